/** How a worker pulls the body of a large request. */
import { assert, describe, it } from "@effect/vitest"
import { headers as makeHeaders, type Msg } from "@nats-io/nats-core"
import { Effect, Fiber } from "effect"
import { header } from "../../../shared/bus/protocol/Subjects.ts"
import { BodyPull } from "../../../shared/bus/worker/BodyPull.ts"

const partBytes = 65_536

describe("a body", () => {
  it.effect("is asked for again from the part that was lost, ever less often", () =>
    Effect.gen(function*() {
      let now = 0
      const asked: Array<readonly [at: number, offset: number, length: number]> = []
      const bodies = new BodyPull(() => now)
      const pass = (ms: number) => {
        for (const until = now + ms; now < until;) {
          now += 250
          bodies.check()
        }
      }
      const receive = (part: number) => {
        const headers = makeHeaders()
        headers.set(header.offset, String(part * partBytes))
        const data = Buffer.alloc(partBytes, part)
        bodies.receive({ subject: "in.chat.worker.job.1", headers, data } as unknown as Msg)
      }
      const fetched = yield* Effect.forkChild(
        bodies.fetch("job.1", 3 * partBytes, (offset, length) => void asked.push([now, offset, length])),
        { startImmediately: true }
      )
      receive(0)
      // the second one is lost
      receive(2)
      pass(7_000)
      for (const part of [1, 1, 2]) receive(part)
      const body = yield* Fiber.join(fetched)
      assert.deepStrictEqual(Buffer.from(body), Buffer.concat([0, 1, 2].map((part) => Buffer.alloc(partBytes, part))))
      const rest = [partBytes, 2 * partBytes] as const
      assert.deepStrictEqual(asked, [[0, 0, 3 * partBytes], [1_000, ...rest], [3_000, ...rest], [7_000, ...rest]])
    }))
})
