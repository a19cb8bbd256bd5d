/** The words and errors that gateways of different versions exchange. */
import { headers, type Msg } from "@nats-io/nats-core"
import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import {
  decodeControl,
  decodeError,
  encodeControl,
  encodeFrame,
  payloadOf,
  type Redispatch
} from "../../../shared/bus/protocol/Frame.ts"
import { InvalidRequest, type JobError, ProviderRejected } from "../../../shared/contract/JobError.ts"

const words: ReadonlyArray<readonly [Redispatch, string]> = [
  ["idempotent", "always"],
  ["unsent", "notYetSent"],
  ["mayHaveBeenSent", "neverSent"]
]

const goWith = (word: string): Msg => {
  const lines = headers()
  lines.set("Gw-Ctl", `go ${word}`)
  // decodes the headers only
  return { headers: lines } as unknown as Msg
}

describe.each(words)("%s", (redispatch, word) => {
  it(`is encoded as ${word}`, () => {
    assert.include(encodeControl({ type: "go", redispatch }), `go ${word}`)
    assert.include(encodeFrame({ type: "claim", redispatch }), `claim ${word}`)
    const claims = payloadOf({ type: "claims", claims: [{ job: "a", attempt: 1, redispatch, behind: 0 }] })
    assert.strictEqual(new TextDecoder().decode(claims), `a 1 ${word} 0`)
    assert.deepStrictEqual(decodeControl(goWith(word)), { type: "go", redispatch })
  })
})

describe("an error", () => {
  const encoded = (error: JobError) => payloadOf({ type: "error", sequence: 0, error })
  const decoded = (error: JobError) => Option.getOrThrow(decodeError(Buffer.from(encoded(error)).toString()))

  it("crosses as it is", () => {
    const error = InvalidRequest.at("n", "must be a number")
    assert.deepStrictEqual(decoded(error), error)
  })

  it("is cut, whatever it quotes, so that it fits into a message", () => {
    const long = "\u{1f600}".repeat(1_000_000)
    const rejected = new ProviderRejected({
      provider: long,
      status: 400,
      message: `x${long}`,
      type: long,
      param: long,
      code: long
    })
    for (const error of [rejected, InvalidRequest.at(long, long, long)]) {
      assert.isBelow(encoded(error).length, 256 * 1024)
      const { message } = decoded(error)
      assert.isAbove(message.length, 8_000)
      assert.isTrue(message.isWellFormed())
      assert.isTrue(message.endsWith("…"))
    }
  })
})
