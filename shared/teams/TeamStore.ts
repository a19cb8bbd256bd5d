/** Creates, edits, lists and removes teams for administrators, and assigns keys to them. Ingress reads teams through `TeamTree`. */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import type { KeyDefaults } from "../keys/KeySettings.ts"
import { KeyStore } from "../keys/KeyStore.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import { modify } from "../nats/Modify.ts"
import * as Team from "./Team.ts"
import type { TeamChanges } from "./TeamSettings.ts"

export class TeamNotFound extends Schema.TaggedError<TeamNotFound>()("TeamNotFound", { id: Schema.String }) {
  override get message() {
    return `No team has the id ${this.id}`
  }
}

/** A setting names a team that does not exist, or does not fit there. */
export class TeamMisplaced extends Schema.TaggedError<TeamMisplaced>()("TeamMisplaced", {
  field: Schema.Literals(["parent", "team"]),
  mistake: Schema.String
}) {
  override get message() {
    return `${this.field}: ${this.mistake}`
  }
}

/** Only an empty team can be deleted. */
export class TeamInUse extends Schema.TaggedError<TeamInUse>()("TeamInUse", {
  teams: Schema.Int,
  keys: Schema.Int
}) {
  override get message() {
    return `The team has ${this.keys} keys and ${this.teams} teams. Move or delete them first`
  }
}

/** A team imported from another gateway. Its id is the same at every import. */
export interface ImportedTeam {
  readonly id: string
  readonly settings: Team.NewTeam
}

export class TeamStore extends Context.Service<TeamStore, {
  readonly create: (settings: Team.NewTeam) => Effect.Effect<Team.Team, TeamMisplaced | JetStreamFailed>
  /** Creates the teams that do not exist yet, in this order, and returns how many. Does not change existing teams. */
  readonly importAll: (
    teams: ReadonlyArray<ImportedTeam>,
    onCreated: (team: Team.Team) => Effect.Effect<void>
  ) => Effect.Effect<number, TeamMisplaced | JetStreamFailed>
  readonly list: Effect.Effect<ReadonlyArray<Team.Team>, JetStreamFailed>
  readonly find: (id: string) => Effect.Effect<Team.Team, TeamNotFound | JetStreamFailed>
  /** Changes some settings, immediately for every process, and returns the new record. */
  readonly edit: (
    id: string,
    changes: TeamChanges
  ) => Effect.Effect<Team.Team, TeamNotFound | TeamMisplaced | JetStreamFailed>
  /** Deletes a team that has neither teams nor keys, after `before`, and returns its last record. */
  readonly remove: <E>(
    id: string,
    before: Effect.Effect<unknown, E>
  ) => Effect.Effect<Team.Team, TeamNotFound | TeamInUse | JetStreamFailed | E>
  /** The team's defaults for new keys; without a team, none. Fails if the team does not exist. */
  readonly keyDefaults: (
    team: string | null | undefined
  ) => Effect.Effect<KeyDefaults, TeamMisplaced | JetStreamFailed>
}>()("shared/teams/TeamStore") {
  static readonly layer = Layer.effect(
    TeamStore,
    Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.teams)
      const keys = yield* KeyStore
      const list = Effect.map(
        bucket.entries,
        (entries) => entries.flatMap(({ value }) => Option.toArray(Option.flatMap(value, Team.decode)))
      )
      const find = Effect.fnUntraced(function*(id: string) {
        const record = Option.flatMap(yield* bucket.get(id), Team.decode)
        return yield* Effect.fromOption(record, () => new TeamNotFound({ id }))
      })
      const checkParent = Effect.fnUntraced(function*(id: string | undefined, parent: string | null | undefined) {
        if (parent === null || parent === undefined) return
        const mistake = Team.parentMistake(Team.byId(yield* list), id, parent)
        if (mistake !== undefined) return yield* new TeamMisplaced({ field: "parent", mistake })
      })

      return TeamStore.of({
        list,
        find,
        create: Effect.fn("TeamStore.create")(function*(settings) {
          yield* checkParent(undefined, settings.parent)
          const team = yield* Team.make(settings)
          yield* bucket.put(team.id, Team.encode(team))
          return team
        }),
        importAll: Effect.fn("TeamStore.importAll")(function*(imported, onCreated) {
          const known = new Map(Team.byId(yield* list))
          let created = 0
          for (const { id, settings } of imported) {
            if (known.has(id)) continue
            const mistake = Team.parentMistake(known, undefined, settings.parent ?? null)
            if (mistake !== undefined) return yield* new TeamMisplaced({ field: "parent", mistake })
            const team = yield* Team.make(settings, id)
            known.set(id, team)
            // a team that an administrator has deleted does not come back
            if ((yield* bucket.createFirst(id, Team.encode(team))) !== "created") continue
            created++
            yield* onCreated(team)
          }
          return created
        }),
        edit: Effect.fn("TeamStore.edit")(function*(id, changes) {
          return yield* modify(
            bucket,
            id,
            Effect.fnUntraced(function*(stored) {
              const record = yield* Effect.fromOption(
                Option.flatMap(stored, Team.decode),
                () => new TeamNotFound({ id })
              )
              yield* checkParent(id, changes.parent)
              const edited = { ...record, ...changes, editedAt: yield* DateTime.now }
              return [edited, Team.encode(edited)]
            })
          )
        }),
        remove: Effect.fn("TeamStore.remove")(function*(id, before) {
          const team = yield* find(id)
          const below = (yield* list).filter(({ parent }) => parent === id).length
          const held = (yield* keys.list).filter((key) => key.team === id).length
          if (below + held > 0) return yield* new TeamInUse({ teams: below, keys: held })
          yield* before
          yield* bucket.delete(id)
          return team
        }),
        keyDefaults: Effect.fnUntraced(function*(id) {
          if (id === null || id === undefined) return {}
          const { keyDefaults } = yield* find(id).pipe(
            Effect.catchTag(
              "TeamNotFound",
              () => new TeamMisplaced({ field: "team", mistake: `no team has the id ${id}` })
            )
          )
          return keyDefaults
        })
      })
    })
  )
}
