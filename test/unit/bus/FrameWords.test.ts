/** The protocol's words for `Redispatch`, which gateways of different versions exchange. */
import { headers, type Msg } from "@nats-io/nats-core"
import { assert, describe, it } from "@effect/vitest"
import {
  decodeControl,
  encodeControl,
  encodeFrame,
  payloadOf,
  type Redispatch
} from "../../../shared/bus/protocol/Frame.ts"

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
