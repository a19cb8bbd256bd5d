/** `npm run restore-drill`: after the loss of all of NATS a backup brings back keys, usage, tasks and batches. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { drill, makeGround } from "../../proof/restore/Drill.ts"

it.live(
  "after the loss of all of NATS a backup brings back keys, teams, usage and responses, also a second time, and tasks continue",
  () =>
    Effect.gen(function*() {
      const ground = yield* makeGround
      yield* Effect.promise(async () => {
        const { checks } = await drill(ground, (line) => console.log(line))
        assert.deepStrictEqual(checks.filter(({ holds }) => !holds), [])
      }).pipe(Effect.onError(() => Effect.sync(() => process.stderr.write(ground.gateway.log))))
    }).pipe(Effect.scoped),
  300_000
)
