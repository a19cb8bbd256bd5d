/** Looks up teams for ingress and for the counting of usage, in a copy in memory that follows the bucket within milliseconds. */
import { Context, Effect, Layer, Option } from "effect"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { mirrorBucket, openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import * as Team from "./Team.ts"

export class TeamTree extends Context.Service<TeamTree, {
  /**
   * A team and the teams above it, the nearest first; `undefined` as for `Team.pathOf`. Returns the same array until a team changes,
   * so that callers can cache what they derive from it.
   */
  readonly pathOf: (id: string) => ReadonlyArray<Team.Team> | undefined
  /** All teams by their ids, as they are now. */
  readonly all: () => Team.Teams
}>()("shared/teams/TeamTree") {
  /** Waits until the copy is complete. */
  static readonly layer = Layer.effect(
    TeamTree,
    Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.teams).pipe(Effect.retry(whileJetStreamFails))
      const paths = new Map<string, ReadonlyArray<Team.Team> | undefined>()
      /** The copy from which `paths` was computed. A new copy replaces it after a lost connection. */
      let known: Team.Teams | undefined
      const teams = yield* mirrorBucket(bucket, ({ value }) => {
        paths.clear()
        return Option.getOrUndefined(Option.flatMap(value, Team.decode))
      })
      return TeamTree.of({
        all: teams,
        pathOf: (id) => {
          const current = teams()
          if (current !== known) {
            paths.clear()
            known = current
          }
          const found = paths.get(id)
          if (found !== undefined) return found
          const path = Team.pathOf(current, id)
          // unknown ids are not cached, because their number is unbounded
          if (path !== undefined) paths.set(id, path)
          return path
        }
      })
    })
  )
}
