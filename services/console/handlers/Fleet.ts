/** The gateway's processes, including those that recently stopped answering. */
import { Clock, Context, Effect, Layer } from "effect"
import type { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import * as Presence from "../../../shared/bus/provision/Presence.ts"

/** How long a silent process stays listed. */
const retentionMs = 60_000

export interface KnownProcess extends Presence.ProcessState {
  readonly isSilent: boolean
}

export class Fleet extends Context.Service<Fleet, {
  readonly list: Effect.Effect<ReadonlyArray<KnownProcess>, JetStreamFailed>
}>()("services/console/handlers/Fleet") {
  static readonly layer = Layer.effect(
    Fleet,
    Effect.gen(function*() {
      const nats = yield* Nats
      const known = new Map<string, { readonly process: Presence.ProcessState; readonly at: number }>()
      return Fleet.of({
        list: Effect.gen(function*() {
          const answers = yield* Presence.askAll
          const now = yield* Clock.currentTimeMillis
          for (const process of answers) known.set(process.id, { process, at: now })
          for (const [id, { at, process }] of known) {
            // a process that drained is expected to be gone
            if (now - at > (process.state === "draining" ? 0 : retentionMs)) known.delete(id)
          }
          return [...known.values()].map(({ at, process }) => ({ ...process, isSilent: at !== now }))
        }).pipe(Effect.provideService(Nats, nats))
      })
    })
  )
}
