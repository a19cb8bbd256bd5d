/** Handlers of `/api/keys/{id}/webhook`. Every change is written to the audit log. */
import { Context, DateTime, Effect, Layer, type Option, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { type Deliveries, openDeliveries } from "../../../shared/webhooks/Deliveries.ts"
import type { Delivery } from "../../../shared/webhooks/Delivery.ts"
import { type Endpoint, type Endpoints, openEndpoints } from "../../../shared/webhooks/Endpoints.ts"
import { CurrentAdmin, CurrentScope } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { KeyUnknown } from "../api/Keys.ts"
import { type DeliveryView, WebhookUnknown } from "../api/Webhooks.ts"
import { orUnavailable } from "../access/Availability.ts"
import { ownersWithin } from "../access/Scopes.ts"
import { handleAll } from "../access/Narrowed.ts"

const shownDeliveries = 100

/** The stored webhooks. */
export class Webhooks extends Context.Service<Webhooks, {
  readonly endpoints: Endpoints
  readonly deliveries: Deliveries
}>()("services/console/Webhooks") {
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

export const view = ({ createdAt, secrets, url }: Endpoint, now: DateTime.Utc) => {
  const until = secrets[1]?.until ?? 0
  return {
    url,
    createdAt: DateTime.makeUnsafe(createdAt),
    formerSecretUntil: until > now.epochMilliseconds ? DateTime.makeUnsafe(until) : null
  }
}

/** With a new secret, which is shown only now. */
export const securedView = ({ endpoint, secret }: Effect.Success<ReturnType<Endpoints["set"]>>, now: DateTime.Utc) => ({
  ...view(endpoint, now),
  secret: secret === undefined ? null : Redacted.value(secret)
})

const deliveryView = ({ at, next, status, ...delivery }: Delivery): DeliveryView => ({
  ...delivery,
  status,
  at: DateTime.makeUnsafe(at),
  nextAttemptAt: status === "pending" ? DateTime.makeUnsafe(next) : null
})

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "webhooks",
  Effect.fn(function*(handlers) {
    const store = yield* KeyStore
    const audit = yield* KeyAudit
    const { deliveries, endpoints } = yield* Webhooks

    const findKey = Effect.fnUntraced(function*(id: string) {
      const scope = yield* CurrentScope
      const keys = yield* orUnavailable(store.list)
      const owners = ownersWithin(scope, keys)
      const key = keys.find((key) => key.id === id && owners.has(key.owner))
      return key ?? (yield* new KeyUnknown({ id }))
    })
    const orUnknown = <A>(found: Option.Option<A>) => Effect.fromOption(found, () => new WebhookUnknown())

    return handleAll("webhooks", handlers, {
      get: Effect.fnUntraced(function*({ params: { id } }) {
        const { owner } = yield* findKey(id)
        return view(yield* orUnknown(yield* orUnavailable(endpoints.find(owner))), yield* DateTime.now)
      }),
      set: Effect.fnUntraced(function*({ params: { id }, payload: { url } }) {
        const key = yield* findKey(id)
        const set = yield* orUnavailable(endpoints.set(key.owner, url))
        yield* audit.webhookChanged((yield* CurrentAdmin).name, key, url)
        return securedView(set, yield* DateTime.now)
      }, Effect.uninterruptible),
      remove: Effect.fnUntraced(function*({ params: { id } }) {
        const key = yield* findKey(id)
        if (!(yield* orUnavailable(endpoints.remove(key.owner)))) return yield* new WebhookUnknown()
        yield* audit.webhookChanged((yield* CurrentAdmin).name, key, null)
      }, Effect.uninterruptible),
      rotate: Effect.fnUntraced(function*({ params: { id } }) {
        const key = yield* findKey(id)
        const { endpoint, secret } = yield* orUnknown(yield* orUnavailable(endpoints.rotate(key.owner)))
        yield* audit.webhookChanged((yield* CurrentAdmin).name, key, "new secret")
        return { ...view(endpoint, yield* DateTime.now), secret: Redacted.value(secret) }
      }, Effect.uninterruptible),
      deliveries: Effect.fnUntraced(function*({ params: { id } }) {
        const { owner } = yield* findKey(id)
        return (yield* orUnavailable(deliveries.list(owner, shownDeliveries))).map(deliveryView)
      }),
      resend: Effect.fnUntraced(function*({ params: { delivery, id } }) {
        const { owner } = yield* findKey(id)
        return deliveryView(yield* orUnknown(yield* orUnavailable(deliveries.resend(owner, delivery))))
      }, Effect.uninterruptible)
    })
  })
)
