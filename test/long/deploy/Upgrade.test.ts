/** A short `npm run upgrade`: from version 0.1.0 to the working tree and back. Skipped where a clone lacks that version's commit. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { missingCommit, namedWorkingTree, type Release, releaseAt } from "../../fixture/gateway/Release.ts"
import { firstVersion, rehearse } from "../../upgrade/Rehearsal.ts"
import { failures } from "../../upgrade/Report.ts"

const missing = missingCommit(firstVersion)
const services = ["ingress", "chat", "embeddings"]

describe.skipIf(missing !== undefined)(missing ?? "an upgrade from version 0.1.0 under load, and its rollback", () => {
  let from: Release
  let to: Release

  // the first time in a clone, npm installs that version's packages
  beforeAll(async () => {
    from = await releaseAt(firstVersion)
    to = await namedWorkingTree()
  }, 600_000)

  it.live("fail no request, pay for none twice, and count usage exactly", () =>
    Effect.gen(function*() {
      const log = (line: string) => console.log(line)
      const outcome = yield* rehearse({ from, to, services, clients: 8, perSecond: 20, log })
      assert.deepStrictEqual(failures(outcome), [])
      assert.strictEqual(outcome.moves.length, 2 * (services.length + 1))
      assert.isAbove(outcome.requests, 100)
    }), 300_000)
})
