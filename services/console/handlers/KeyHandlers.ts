/** Handlers of `/api/keys` and `/api/principals`. Every change is written to the audit log. */
import { DateTime, Effect, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { CurrentAdmin } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { KeyUnknown } from "../api/Keys.ts"
import { orUnavailable, whileCounting } from "../access/Availability.ts"
import { usageByKey } from "./KeyUse.ts"
import { asRefusal } from "./TeamHandlers.ts"
import { TokenOwners } from "./TokenOwners.ts"
import { Webhooks } from "./WebhookHandlers.ts"

/** How many days back to search for a key's last use. */
const searchedDays = 90

const shownChanges = 100

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

    const list = Effect.gen(function*() {
      const now = yield* DateTime.now
      const to = DateTime.formatIsoDateUtc(now)
      const from = DateTime.formatIsoDateUtc(DateTime.subtract(now, { days: searchedDays }))
      const keys = yield* store.list
      const thisMonth = yield* counters.query({ from: `${to.slice(0, 7)}-01`, to, by: "key" })
      const use = usageByKey(thisMonth, yield* counters.lastDays({ from, to }))
      return keys
        .toSorted((a, b) => b.createdAt.epochMilliseconds - a.createdAt.epochMilliseconds)
        .map((key) => ({ ...key, ...use(key.id) }))
    })

    return handlers.handleAll({
      list: () => orUnavailable(list, whileCounting),
      create: Effect.fnUntraced(function*({ payload }) {
        const keyDefaults = yield* asRefusal(teams.keyDefaults(payload.team))
        const { key, secret } = yield* orUnavailable(store.create({ ...keyDefaults, ...payload }))
        yield* audit.created((yield* CurrentAdmin).name, key)
        return { key, secret: Redacted.value(secret) }
      }, Effect.uninterruptible),
      edit: Effect.fnUntraced(function*({ params: { id }, payload }) {
        yield* asRefusal(teams.keyDefaults(payload.team))
        const key = yield* orUnavailable(store.edit(id, payload)).pipe(Effect.catchTag("KeyNotFound", unknown))
        yield* audit.edited((yield* CurrentAdmin).name, key, payload)
        return key
      }, Effect.uninterruptible),
      revoke: Effect.fnUntraced(function*({ params: { id } }) {
        const key = yield* orUnavailable(store.revoke(id)).pipe(Effect.catchTag("KeyNotFound", unknown))
        yield* audit.revoked((yield* CurrentAdmin).name, key)
        const isReplaced = (yield* orUnavailable(store.list)).some(({ owner }) => owner === key.owner)
        if (!isReplaced) yield* orUnavailable(endpoints.remove(key.owner))
      }, Effect.uninterruptible),
      principals: () => orUnavailable(owners.latest(shownPrincipals)),
      changes: () => orUnavailable(audit.latest(shownChanges))
    })
  })
)
