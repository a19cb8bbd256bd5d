/** The restore of a stream gives the server time to unpack it. */
import { assert, describe, it } from "@effect/vitest"
import type { NatsConnection } from "@nats-io/nats-core"
import { Effect, Stream } from "effect"
import { restore } from "../../../shared/bus/provision/Snapshot.ts"

/** A server that needs this long to unpack a stream, in milliseconds. */
const serverThatUnpacksIn = (ms: number) =>
  ({
    request: (_subject: string, data: Uint8Array, { timeout }: { readonly timeout: number }) =>
      data.length === 0 && timeout < ms
        ? Promise.reject(new Error("timeout"))
        : Promise.resolve({ data: new Uint8Array(0) })
  }) as unknown as NatsConnection

const restoring = (bytes: number, unpackMs: number) =>
  restore(
    serverThatUnpacksIn(unpackMs),
    "A",
    { config: {}, state: { bytes } },
    Stream.make(new Uint8Array(9), new Uint8Array(0))
  )

describe("a restored stream", () => {
  it.effect("may take the server long to unpack if it is large", () => restoring(8 * 1024 ** 3, 20 * 60_000))

  it.effect("fails if a server does not answer that should be done", () =>
    Effect.gen(function*() {
      assert.include((yield* Effect.flip(restoring(1024, 20 * 60_000))).message, "timeout")
    }))
})
