/** Handlers of `/api/keys` and `/api/principals`. Every change is written to the audit log. */
import { DateTime, Effect, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type ApiKey, isReplaced } from "../../../shared/keys/ApiKey.ts"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import type { KeyDefaults } from "../../../shared/keys/KeySettings.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { CurrentAdmin, CurrentScope, type Scope } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { FieldRefused } from "../api/Errors.ts"
import { KeyUnknown } from "../api/Keys.ts"
import { orUnavailable, whileCounting } from "../access/Availability.ts"
import { handleAll } from "../access/Narrowed.ts"
import { precedenceMistake } from "./KeyPrecedence.ts"
import { usageByKey } from "./KeyUse.ts"
import { asRefusal } from "./TeamHandlers.ts"
import { TokenOwners } from "./TokenOwners.ts"
import { Webhooks } from "./WebhookHandlers.ts"

/** How many days back to search for a key's last use. */
const searchedDays = 90

const shownChanges = 100

/** How many changes of all keys are read to find those of a member's teams. */
const searchedChanges = 1_000

const shownPrincipals = 5_000

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "keys",
  Effect.fn(function*(handlers) {
    const store = yield* KeyStore
    const audit = yield* KeyAudit
    const counters = yield* UsageCounters
    const teams = yield* TeamStore
    const { endpoints } = yield* Webhooks
    const owners = yield* TokenOwners
    const unknown = ({ id }: { readonly id: string }) => new KeyUnknown({ id })

    /** The defaults of the team for which a key is meant, if that is within the scope. */
    const defaultsOf = Effect.fnUntraced(function*(scope: Scope, team: string | null | undefined) {
      if (!scope.has(team ?? null)) {
        return yield* new FieldRefused({ field: "team", message: "team: must be the id of one of your teams" })
      }
      return yield* asRefusal(teams.keyDefaults(team))
    })
    /** Members may change what the team's limits bound, but may not give a key precedence over the keys of other teams. */
    const checkPrecedence = Effect.fnUntraced(function*(scope: Scope, chosen: KeyDefaults, ofTeam: KeyDefaults) {
      const mistake = scope.isWhole ? undefined : precedenceMistake(chosen, ofTeam)
      if (mistake !== undefined) return yield* new FieldRefused(mistake)
    })

    const list = Effect.gen(function*() {
      const scope = yield* CurrentScope
      const now = yield* DateTime.now
      const to = DateTime.formatIsoDateUtc(now)
      const from = DateTime.formatIsoDateUtc(DateTime.subtract(now, { days: searchedDays }))
      const keys = (yield* store.list).filter(({ team }) => scope.has(team))
      const thisMonth = yield* counters.query({ from: `${to.slice(0, 7)}-01`, to, by: "key" }, scope.has)
      const use = usageByKey(thisMonth, yield* counters.lastDays({ from, to }))
      return keys
        .toSorted((a, b) => b.createdAt.epochMilliseconds - a.createdAt.epochMilliseconds)
        .map((key) => ({ ...key, ...use(key.id) }))
    })

    /** The changes of keys that were in a team within the scope. Leaves out changes of teams, which administrators make. */
    const changes = Effect.gen(function*() {
      const scope = yield* CurrentScope
      if (scope.isWhole) return yield* audit.latest(shownChanges)
      const found = yield* audit.latest(searchedChanges)
      return found.filter(({ team = null }) => scope.has(team)).slice(0, shownChanges)
    })

    return handleAll("keys", handlers, {
      list: () => orUnavailable(list, whileCounting),
      create: Effect.fnUntraced(function*({ payload }) {
        const scope = yield* CurrentScope
        const keyDefaults = yield* defaultsOf(scope, payload.team)
        yield* checkPrecedence(scope, payload, keyDefaults)
        const { key, secret } = yield* orUnavailable(store.create({ ...keyDefaults, ...payload }))
        yield* audit.created((yield* CurrentAdmin).name, key)
        return { key, secret: Redacted.value(secret) }
      }, Effect.uninterruptible),
      edit: Effect.fnUntraced(function*({ params: { id }, payload }) {
        const scope = yield* CurrentScope
        const check = Effect.fnUntraced(function*(before: ApiKey) {
          if (!scope.has(before.team)) return yield* new KeyUnknown({ id })
          if (!scope.isWhole && before.disabled && payload.disabled === false) {
            return yield* new FieldRefused({
              field: "disabled",
              message: "disabled: only an administrator can enable a key"
            })
          }
          const { team = before.team } = payload
          const keyDefaults = yield* defaultsOf(scope, team)
          yield* checkPrecedence(scope, team === before.team ? payload : { ...before, ...payload }, keyDefaults)
        })
        const key = yield* orUnavailable(store.edit(id, payload, check)).pipe(
          Effect.catchTag("KeyNotFound", unknown)
        )
        yield* audit.edited((yield* CurrentAdmin).name, key, payload)
        return key
      }, Effect.uninterruptible),
      revoke: Effect.fnUntraced(function*({ params: { id } }) {
        const scope = yield* CurrentScope
        const isWithin = ({ team }: ApiKey) => scope.has(team)
        const keys = yield* orUnavailable(store.list)
        const found = keys.find((key) => key.id === id && isWithin(key))
        if (found === undefined) return yield* new KeyUnknown({ id })
        // first: once the key is gone, a repeated request would not find its webhook
        if (!isReplaced(found, keys)) yield* orUnavailable(endpoints.remove(found.owner))
        const key = yield* orUnavailable(store.revoke(id, isWithin)).pipe(Effect.catchTag("KeyNotFound", unknown))
        yield* audit.revoked((yield* CurrentAdmin).name, key)
      }, Effect.uninterruptible),
      principals: () => orUnavailable(owners.latest(shownPrincipals)),
      changes: () => orUnavailable(changes)
    })
  })
)
