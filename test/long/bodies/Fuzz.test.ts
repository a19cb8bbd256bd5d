/** A short `npm run fuzz`: malformed requests to every operation. */
import { assert, it } from "@effect/vitest"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { environment, fuzz, services } from "../../fuzz/Fuzz.ts"

it.live(
  "malformed requests to every operation are served or rejected with a clear error",
  () =>
    Gateway.run({ services, environment }, async (gateway) => {
      const log = (line: string) => console.log(line)
      const { broken, findings, statuses } = await fuzz(gateway, {
        seed: 11,
        requests: 400,
        clients: 8,
        // other tests share the machine, and Growth.test.ts has every shape
        answeredWithinMs: 10_000,
        shapeStep: 5,
        log
      })
      assert.sameMembers(Object.keys(statuses), [
        ...operations.map(({ name }) => name),
        "responses/{id}",
        "files",
        "batches"
      ])
      assert.deepStrictEqual(findings, [])
      assert.deepStrictEqual(broken, [])
      for (const [operation, own] of Object.entries(statuses)) assert.isAbove(own["400"] ?? 0, 2, operation)
    }),
  120_000
)
