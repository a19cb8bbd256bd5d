/** Handlers of `/api/keys/{id}/webhook` and `/api/teams/{id}/webhook`. Every change is written to the audit log. */
import { Context, DateTime, Effect, Layer, type Option, Redacted, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type Changed, KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import { type Deliveries, openDeliveries } from "../../../shared/webhooks/Deliveries.ts"
import type { Delivery } from "../../../shared/webhooks/Delivery.ts"
import { type Endpoint, type Endpoints, openEndpoints } from "../../../shared/webhooks/Endpoints.ts"
import { CurrentAdmin, CurrentScope } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { KeyUnknown } from "../api/Keys.ts"
import { TeamUnknown } from "../api/Teams.ts"
import { type DeliveryView, WebhookUnknown } from "../api/Webhooks.ts"
import { orUnavailable } from "../access/Availability.ts"
import { ownersWithin } from "../access/Scopes.ts"
import { handleAll } from "../access/Narrowed.ts"

const shownDeliveries = 100

/** The stored webhooks. */
export class Webhooks extends Context.Service<Webhooks, {
  readonly endpoints: Endpoints
  readonly deliveries: Deliveries
}>()("services/console/handlers/Webhooks") {
  /** Reads `GATEWAY_SECRET`. */
  static readonly layer = Layer.effect(
    Webhooks,
    Effect.gen(function*() {
      const endpoints = yield* Effect.retry(openEndpoints, whileJetStreamFails)
      const deliveries = yield* Effect.retry(openDeliveries, whileJetStreamFails)
      yield* Effect.forkScoped(Effect.retry(endpoints.sealAnew, whileJetStreamFails))
      return { endpoints, deliveries }
    })
  )
}

const view = ({ createdAt, secrets, url }: Endpoint, now: DateTime.Utc) => {
  const until = secrets[1]?.until ?? 0
  return {
    url,
    createdAt: DateTime.makeUnsafe(createdAt),
    formerSecretUntil: until > now.epochMilliseconds ? DateTime.makeUnsafe(until) : null
  }
}

/** The webhook, with its secret if that is new: a secret is shown only once. */
const securedView = ({ endpoint, secret }: Effect.Success<ReturnType<Endpoints["set"]>>, now: DateTime.Utc) => ({
  ...view(endpoint, now),
  secret: secret === undefined ? null : Redacted.value(secret)
})

const deliveryView = ({ at, next, status, ...delivery }: Delivery): DeliveryView => ({
  ...delivery,
  status,
  at: DateTime.makeUnsafe(at),
  nextAttemptAt: status === "pending" ? DateTime.makeUnsafe(next) : null
})

/** What has a webhook: the owner of the endpoint, and how the audit log names it. */
interface Found {
  readonly owner: string
  readonly named: Changed
}

interface ById {
  readonly params: { readonly id: string }
}

const orUnknown = <A>(found: Option.Option<A>) => Effect.fromOption(found, () => new WebhookUnknown())

/** The handlers for webhooks of what `find` finds. */
const handlersOf = Effect.fnUntraced(function*<E, R>(find: (id: string) => Effect.Effect<Found, E, R>) {
  const audit = yield* KeyAudit
  const { deliveries, endpoints } = yield* Webhooks
  const record = Effect.fnUntraced(function*({ named }: Found, webhook: string | null) {
    yield* audit.webhookChanged((yield* CurrentAdmin).name, named, webhook)
  })
  return {
    get: Effect.fnUntraced(function*({ params: { id } }: ById) {
      const { owner } = yield* find(id)
      return view(yield* orUnknown(yield* orUnavailable(endpoints.find(owner))), yield* DateTime.now)
    }),
    set: Effect.fnUntraced(
      function*({ params: { id }, payload: { url } }: ById & { readonly payload: { readonly url: string } }) {
        const found = yield* find(id)
        const set = yield* orUnavailable(endpoints.set(found.owner, url))
        yield* record(found, new URL(url).origin)
        return securedView(set, yield* DateTime.now)
      },
      Effect.uninterruptible
    ),
    remove: Effect.fnUntraced(function*({ params: { id } }: ById) {
      const found = yield* find(id)
      if (!(yield* orUnavailable(endpoints.remove(found.owner)))) return yield* new WebhookUnknown()
      yield* record(found, null)
    }, Effect.uninterruptible),
    rotate: Effect.fnUntraced(function*({ params: { id } }: ById) {
      const found = yield* find(id)
      const rotated = yield* orUnknown(yield* orUnavailable(endpoints.rotate(found.owner)))
      yield* record(found, "new secret")
      return securedView(rotated, yield* DateTime.now)
    }, Effect.uninterruptible),
    deliveries: Effect.fnUntraced(function*({ params: { id } }: ById) {
      const { owner } = yield* find(id)
      return (yield* orUnavailable(deliveries.list(owner, shownDeliveries))).map(deliveryView)
    }),
    resend: Effect.fnUntraced(
      function*({ params: { delivery, id } }: { readonly params: { readonly delivery: string; readonly id: string } }) {
        const { owner } = yield* find(id)
        return deliveryView(yield* orUnknown(yield* orUnavailable(deliveries.resend(owner, delivery))))
      },
      Effect.uninterruptible
    )
  }
})

const ofKeys = HttpApiBuilder.group(
  ConsoleApi,
  "webhooks",
  Effect.fn(function*(handlers) {
    const store = yield* KeyStore
    const find = Effect.fnUntraced(function*(id: string) {
      const scope = yield* CurrentScope
      const keys = yield* orUnavailable(store.list)
      const owners = ownersWithin(scope, keys)
      const key = keys.find((key) => key.id === id && owners.has(key.owner))
      return key === undefined ? yield* new KeyUnknown({ id }) : { owner: key.owner, named: key }
    })
    return handleAll("webhooks", handlers, yield* handlersOf(find))
  })
)

const ofTeams = HttpApiBuilder.group(
  ConsoleApi,
  "teamWebhooks",
  Effect.fn(function*(handlers) {
    const store = yield* TeamStore
    const find = (id: string) =>
      orUnavailable(store.find(id)).pipe(
        Effect.map((team) => ({ owner: id, named: Struct.pick(team, ["id", "name"]) })),
        Effect.catchTag("TeamNotFound", () => new TeamUnknown({ id }))
      )
    return handleAll("teamWebhooks", handlers, yield* handlersOf(find))
  })
)

export const layer = Layer.mergeAll(ofKeys, ofTeams)
