/** Handlers of `/api/teams`. Every change is written to the audit log. */
import { DateTime, Effect, Predicate, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import type { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import * as Team from "../../../shared/teams/Team.ts"
import { TeamChanges } from "../../../shared/teams/TeamSettings.ts"
import { type TeamMisplaced, TeamStore } from "../../../shared/teams/TeamStore.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import type { UsageRow } from "../../../shared/usage/UsageTable.ts"
import { CurrentAdmin, CurrentScope } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { FieldRefused } from "../api/Errors.ts"
import { TeamNotEmpty, TeamUnknown } from "../api/Teams.ts"
import { orUnavailable, whileCounting } from "../access/Availability.ts"
import { handleAll } from "../access/Narrowed.ts"
import { Webhooks } from "./WebhookHandlers.ts"

const changesAsJson = Schema.encodeSync(TeamChanges)

const isMisplaced = (error: unknown): error is TeamMisplaced => Predicate.isTagged(error, "TeamMisplaced")

/** Turns a team that does not exist or does not fit into an error that names the field. */
export const asRefusal = <A, E, R>(effect: Effect.Effect<A, E | TeamMisplaced | JetStreamFailed, R>) =>
  Effect.catchIf(
    orUnavailable(effect),
    isMisplaced,
    ({ field, message }) => Effect.fail(new FieldRefused({ field, message }))
  )

/** The number of requests of each team and the teams below it, from rows by the team of the key. */
const requestsOf = (teams: Team.Teams, rows: ReadonlyArray<UsageRow>): ReadonlyMap<string, number> => {
  const sums = new Map<string, number>()
  for (const { requests, team = "" } of rows) {
    for (const { id } of Team.pathOf(teams, team) ?? []) sums.set(id, (sums.get(id) ?? 0) + requests)
  }
  return sums
}

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "teams",
  Effect.fn(function*(handlers) {
    const store = yield* TeamStore
    const keys = yield* KeyStore
    const audit = yield* KeyAudit
    const counters = yield* UsageCounters
    const spending = yield* Spending
    const { endpoints } = yield* Webhooks
    const unknown = ({ id }: { readonly id: string }) => new TeamUnknown({ id })

    const list = Effect.gen(function*() {
      const scope = yield* CurrentScope
      const to = DateTime.formatIsoDateUtc(yield* DateTime.now)
      const teams = yield* store.list
      const rows = yield* counters.query({ from: `${to.slice(0, 7)}-01`, to, by: "team" })
      const requests = requestsOf(Team.byId(teams), rows)
      const sizes = Map.groupBy(yield* keys.list, ({ team }) => team)
      return teams
        .filter(({ id }) => scope.has(id))
        .toSorted((a, b) => a.name.localeCompare(b.name))
        .map((team) => ({
          ...team,
          parent: scope.has(team.parent) ? team.parent : null,
          keys: sizes.get(team.id)?.length ?? 0,
          requestsThisMonth: requests.get(team.id) ?? 0,
          spentThisMonthUsd: spending.of(team.id)
        }))
    })

    return handleAll("teams", handlers, {
      list: () => orUnavailable(list, whileCounting),
      create: Effect.fnUntraced(function*({ payload }) {
        const team = yield* asRefusal(store.create(payload))
        yield* audit.teamChanged((yield* CurrentAdmin).name, team, "created", { ...Team.settingsAsJson(team) })
        return team
      }, Effect.uninterruptible),
      get: Effect.fnUntraced(function*({ params: { id } }) {
        const found = (yield* orUnavailable(list, whileCounting)).find((team) => team.id === id)
        return found ?? (yield* new TeamUnknown({ id }))
      }),
      edit: Effect.fnUntraced(function*({ params: { id }, payload }) {
        const team = yield* asRefusal(store.edit(id, payload)).pipe(Effect.catchTag("TeamNotFound", unknown))
        yield* audit.teamChanged((yield* CurrentAdmin).name, team, "edited", { ...changesAsJson(payload) })
        return team
      }, Effect.uninterruptible),
      remove: Effect.fnUntraced(function*({ params: { id } }) {
        // the webhook first: once the team is gone, a repeated request would not find it
        const team = yield* orUnavailable(store.remove(id, endpoints.remove(id))).pipe(
          Effect.catchTags({
            TeamNotFound: unknown,
            TeamInUse: ({ keys, message, teams }) => new TeamNotEmpty({ keys, message, teams })
          })
        )
        yield* audit.teamChanged((yield* CurrentAdmin).name, team, "deleted")
      }, Effect.uninterruptible)
    })
  })
)
