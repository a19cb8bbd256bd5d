/** What each provider's headers say about the account's limits, as their documentation and recorded answers have them. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { quotaIn } from "../../../../shared/provider/transport/QuotaHeaders.ts"

const now = 1_784_000_000_000
const inSeconds = (seconds: number) => DateTime.formatIso(DateTime.makeUnsafe(now + 1_000 * seconds))

const rows: ReadonlyArray<{
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly quota: object | undefined
  readonly resetMs?: number
}> = [
  {
    name: "OpenAI",
    headers: {
      "x-ratelimit-limit-requests": "5000",
      "x-ratelimit-remaining-requests": "4999",
      "x-ratelimit-reset-requests": "12ms",
      "x-ratelimit-limit-tokens": "160000",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "6.5s"
    },
    quota: { requestsLeft: 4_999, tokensLeft: 0, tokensLimit: 160_000 },
    resetMs: 6_500
  },
  {
    name: "OpenAI, with a reset of minutes",
    headers: { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s" },
    quota: { requestsLeft: 0 },
    resetMs: 60_000
  },
  {
    name: "Azure",
    headers: {
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "10",
      "x-ratelimit-remaining-tokens": "-1",
      "x-ratelimit-limit-tokens": "-1",
      "x-ratelimit-reset-tokens": "0"
    },
    quota: { requestsLeft: 0 },
    resetMs: 10_000
  },
  {
    name: "Anthropic",
    headers: {
      "anthropic-ratelimit-requests-limit": "1000",
      "anthropic-ratelimit-requests-remaining": "999",
      "anthropic-ratelimit-requests-reset": inSeconds(1),
      "anthropic-ratelimit-input-tokens-limit": "80000",
      "anthropic-ratelimit-input-tokens-remaining": "79000",
      "anthropic-ratelimit-input-tokens-reset": inSeconds(1),
      "anthropic-ratelimit-output-tokens-limit": "16000",
      "anthropic-ratelimit-output-tokens-remaining": "0",
      "anthropic-ratelimit-output-tokens-reset": inSeconds(20)
    },
    quota: { requestsLeft: 999, tokensLeft: 0, tokensLimit: 16_000 },
    resetMs: 20_000
  },
  {
    name: "Groq",
    headers: {
      "x-ratelimit-limit-requests": "14400",
      "x-ratelimit-remaining-requests": "14370",
      "x-ratelimit-reset-requests": "2m59.56s",
      "x-ratelimit-limit-tokens": "18000",
      "x-ratelimit-remaining-tokens": "17997",
      "x-ratelimit-reset-tokens": "7.66s"
    },
    quota: { requestsLeft: 14_370, tokensLeft: 17_997, tokensLimit: 18_000 }
  },
  {
    name: "Cerebras",
    headers: {
      "x-ratelimit-remaining-requests-day": "0",
      "x-ratelimit-reset-requests-day": "33011.382867",
      "x-ratelimit-remaining-tokens-minute": "500"
    },
    quota: { requestsLeft: 0, tokensLeft: 500 },
    resetMs: 60_000
  },
  {
    name: "OpenRouter",
    headers: {
      "x-ratelimit-limit": "20",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(now + 15_000)
    },
    quota: { requestsLeft: 0 },
    resetMs: 15_000
  },
  {
    name: "Together",
    headers: {
      "x-ratelimit-remaining": "59",
      "x-tokenlimit-limit": "3000",
      "x-tokenlimit-remaining": "12",
      "x-tokenlimit-reset": "1"
    },
    quota: { requestsLeft: 59, tokensLeft: 12, tokensLimit: 3_000 }
  },
  {
    name: "the IETF's draft",
    headers: { "ratelimit-limit": "100", "ratelimit-remaining": "0", "ratelimit-reset": "7" },
    quota: { requestsLeft: 0 },
    resetMs: 7_000
  },
  { name: "nothing", headers: { "content-type": "application/json", "x-remaining-tokens": "3" }, quota: undefined },
  { name: "nonsense", headers: { "x-ratelimit-remaining-requests": "many" }, quota: undefined },
  {
    name: "a reset that cannot be read",
    headers: { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon" },
    quota: { requestsLeft: 0 }
  }
]

describe("the headers about limits", () => {
  it.each(rows)("of $name are read", ({ headers, quota, resetMs }) => {
    assert.deepStrictEqual(quotaIn(headers, now), { quota, resetMs })
  })
})
