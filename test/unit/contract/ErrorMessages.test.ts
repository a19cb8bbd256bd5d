/** Every error message names what it is about, in plain words without internal names. */
import { assert, describe, it } from "@effect/vitest"
import { Predicate } from "effect"
import * as ErrorEnvelope from "../../../services/ingress/errors/ErrorEnvelope.ts"
import * as IngressError from "../../../services/ingress/errors/IngressError.ts"
import * as JobError from "../../../shared/contract/JobError.ts"

const provider = "acme"

const failures = JobError.ProviderFailed.fields.reason.literals
const phases = ["connect", "first byte", "idle", "total"] as const
const unreadable = ["syntax", "headers", "extensions", "timeout"] as const

/** Every error in each of its forms, with what its message must name. */
const table: ReadonlyArray<readonly [IngressError.RequestError, ...names: ReadonlyArray<string>]> = [
  [new JobError.InvalidRequest({ message: "n: must be a number", param: "n", code: "invalid_value" }), "n"],
  [new JobError.ModelNotFound({ model: "gpt-9" }), "gpt-9", "/v1/models"],
  [
    new JobError.ModelUnsuitable({ model: "e-3", workload: "embeddings", operation: "chat.completions" }),
    "e-3",
    "embeddings",
    "chat.completions",
    "/v1/models"
  ],
  [new JobError.ModelDisabled({ model: "gpt-9" }), "gpt-9", "operator"],
  [new JobError.ReferenceNotFound({ param: "previous_response_id" }), "previous_response_id"],
  [
    new JobError.ProviderRejected({ provider, status: 400, message: "too long", type: null, param: null, code: null }),
    "too long"
  ],
  [new JobError.ProviderRateLimited({ provider, retryAfterMs: null }), provider],
  [new JobError.ProviderRateLimited({ provider, retryAfterMs: 1_500 }), provider, "2 s"],
  ...failures.map((reason) =>
    [new JobError.ProviderFailed({ provider, reason, status: 503, retryAfterMs: null }), provider] as const
  ),
  ...phases.map((phase) => [new JobError.ProviderTimeout({ provider, phase }), provider] as const),
  [new JobError.QueueFull({ retryAfterMs: 2_000 }), "waiting", "2 s"],
  [
    new JobError.QueueFull({ retryAfterMs: 30_000, unfinished: { most: 100, of: "batches" } }),
    "owner has 100 unfinished batches",
    "30 s"
  ],
  [new JobError.QueueTimeout({ retryAfterMs: 2_000 }), "in time", "2 s"],
  [new JobError.WorkerLost(), "worker", "again"],
  [new JobError.PoisonJob(), "Two workers", "Do not send it again", "x-request-id"],
  [new JobError.AnswerLost(), "answer", "again"],
  [new JobError.Cancelled(), "cancelled"],
  [new JobError.Unavailable({ retryAfterMs: 100 }), "gateway", "1 s"],
  [new JobError.InternalError(), "gateway", "x-request-id"],
  [
    new IngressError.KeyMissing({ ways: ["'Authorization: Bearer <key>'", "'x-api-key: <key>'"] }),
    "API key",
    "Authorization",
    "x-api-key"
  ],
  [new JobError.KeyInvalid(), "API key"],
  [new JobError.KeyInactive({ reason: "disabled" }), "API key", "disabled"],
  [new JobError.KeyInactive({ reason: "expired" }), "API key", "expired"],
  [new JobError.ModelNotAllowed({ model: "gpt-9" }), "gpt-9", "/v1/models"],
  [
    new IngressError.KeyLimitReached({ limit: "requests", max: 600, retryAfterMs: 100 }),
    "600 requests per minute",
    "1 s"
  ],
  [new IngressError.KeyLimitReached({ limit: "concurrent", max: 6, retryAfterMs: 100 }), "6 concurrent requests"],
  [
    new IngressError.KeyLimitReached({ limit: "tokens", max: 600, team: "search", retryAfterMs: 100 }),
    "The team 'search'",
    "600 tokens per minute"
  ],
  [
    new IngressError.KeyLimitReached({ limit: "budget", max: 0.5, team: "search", retryAfterMs: 100 }),
    "The team 'search'",
    "0.5 USD",
    "reserved"
  ],
  [new JobError.BudgetSpent({ budgetUsd: 250, retryAfterMs: 100 }), "The API key", "250 USD", "month"],
  [new JobError.BudgetSpent({ budgetUsd: 250, team: "search", retryAfterMs: 100 }), "The team 'search'", "250 USD"],
  [
    new JobError.GuardrailRefused({ direction: "request", explanation: "it has a name" }),
    "refused the request: it has a name"
  ],
  [new JobError.GuardrailUnavailable({ direction: "answer", retryAfterMs: 900 }), "guardrail", "answer", "1 s"],
  [
    new JobError.LimitsUnavailable({ limit: "The API key has a limit of 60 requests per minute", retryAfterMs: 900 }),
    "The API key",
    "60 requests per minute",
    "cannot read or write",
    "1 s"
  ],
  [new IngressError.TokenInvalid({ check: "aud" }), "aud", "token"],
  [new IngressError.BodyTooLarge({ limitBytes: 1_024 }), "1024 bytes"],
  [new IngressError.MediaTypeUnsupported(), "Content-Type"],
  [new IngressError.RouteNotFound({ method: "GET", path: "/v3", suggestion: undefined }), "GET /v3", "/docs"],
  [
    new IngressError.RouteNotFound({ method: "GET", path: "/models", suggestion: "/v1/models" }),
    "GET /models",
    "/v1/models"
  ],
  [new IngressError.LinkRefused({ reason: "expired" }), "link", "expired"],
  [new IngressError.LinkRefused({ reason: "forged" }), "link", "signature"],
  [IngressError.ContentCodingUnsupported.of("snappy"), "'snappy'", "zstd, br, gzip, deflate"],
  [new IngressError.FileNotFound(), "file"],
  [
    new IngressError.TokensOverLimit({ tokens: 8_000, fields: ["max_tokens", "n"], max: 3_000 }),
    "'max_tokens' and 'n'",
    "8000",
    "3000 tokens per minute"
  ],
  [new IngressError.TaskNotFound(), "task"],
  [new IngressError.TaskNotCompleted({ status: "queued" }), "task", "queued"],
  [new IngressError.IdempotencyKeyReused(), "idempotency key"],
  [new IngressError.AnswerNotKept(), "idempotency key"],
  [new IngressError.RangeNotSatisfiable({ size: 48 }), "range", "48 bytes"],
  [new IngressError.UpgradeRequired(), "only WebSockets, and", "POST"],
  [new IngressError.OriginNotAllowed({ origin: "https://a.example" }), "'https://a.example'", "GATEWAY_CORS_ORIGINS"],
  [new IngressError.SocketExpired({ minutes: 60 }), "60 minutes"],
  [new IngressError.TooManyLanes({ max: 32 }), "stream_id", "32"],
  ...unreadable.map((reason) => [new IngressError.RequestUnreadable({ reason }), "request"] as const)
]

/** Words of the code and of its libraries. */
const inside =
  /Error\b|Expected|undefined|null|Cause|Schema|Effect|NATS|JetStream|\bjob\b|[A-Z][a-z]+[A-Z]|file:|node_modules/

describe("an error message", () => {
  it.each(table.map(([error, ...names]) => [error._tag, error, names] as const))(
    "of %s names what it is about",
    (tag, error, names) => {
      const { message } = ErrorEnvelope.toFields(error)
      for (const name of names) assert.include(message.toLowerCase(), name.toLowerCase())
      assert.notInclude(message, tag)
      // a protocol of clients, too
      assert.notMatch(message.replaceAll("WebSocket", ""), inside)
    }
  )

  it("exists for every error", () => {
    const classes = Object.values<unknown>({ ...JobError, ...IngressError }).filter(Predicate.hasProperty("identifier"))
    const tags = new Set<unknown>(table.map(([{ _tag }]) => _tag))
    assert.isAbove(classes.length, 25)
    assert.deepStrictEqual(classes.map(({ identifier }) => identifier).filter((tag) => !tags.has(tag)), [])
  })
})

describe("an error that no retry can fix", () => {
  const errors: ReadonlyArray<IngressError.RequestError> = [
    new JobError.PoisonJob(),
    new JobError.ProviderFailed({ provider, reason: "credit", status: 402, retryAfterMs: null }),
    new JobError.BudgetSpent({ budgetUsd: 1, retryAfterMs: 864_000_000 })
  ]

  it.each(errors.map((error) => [error._tag, error] as const))("of %s is not retried by any client", (_, error) => {
    for (const dialect of ["openai", "anthropic"] as const) {
      assert.propertyVal(ErrorEnvelope.toText(dialect, error, "").headers, "x-should-retry", "false")
    }
    // Codex looks at the status only
    assert.isBelow(ErrorEnvelope.toText("responses", error, "").status, 500)
  })
})
