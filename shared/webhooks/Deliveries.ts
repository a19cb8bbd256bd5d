/** Stores the deliveries of events and queues them for the workers, which send them; see `Deliverer.ts`. */
import { Clock, Effect, Option, Order, Schema } from "effect"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { buckets, queues } from "../nats/Storage.ts"
import { openQueue, type WorkItem } from "../nats/WorkQueue.ts"
import { digest } from "../records/OwnerToken.ts"
import * as Delivery from "./Delivery.ts"

/** An item of the queue. */
const Item = Schema.Struct({ owner: Schema.String, id: Schema.String, round: Schema.Int })
const itemCodec = Schema.fromJsonString(Item)
const encodeItem = Schema.encodeSync(itemCodec)
const decodeItem = Schema.decodeUnknownOption(itemCodec)

const keyOf = (owner: string, id: string): string => `${digest(owner)}.${id}`

const newestFirst = Order.mapInput(Order.flip(Order.Number), ({ at }: Delivery.Delivery) => at)

/** A pending delivery, with the revision of its record. */
export interface Due {
  readonly owner: string
  readonly delivery: Delivery.Delivery
  readonly revision: number
}

export type Deliveries = Effect.Success<typeof openDeliveries>

/** Opens the store and the queue. `owner` is always the owner's id. */
export const openDeliveries = Effect.gen(function*() {
  const bucket = yield* openBucket(buckets.webhookDeliveries)
  const queue = yield* openQueue(queues.webhooks)

  const find = (owner: string, id: string) => Effect.map(bucket.get(keyOf(owner, id)), Option.flatMap(Delivery.decode))
  const write = (owner: string, delivery: Delivery.Delivery) =>
    bucket.put(keyOf(owner, delivery.id), Delivery.encode(delivery))

  /** Queues a delivery, or marks it as failed if too many of the owner's events wait. */
  const submit = Effect.fnUntraced(function*(owner: string, delivery: Delivery.Delivery) {
    const { id, round } = delivery
    const item = encodeItem({ owner, id, round })
    if (yield* queue.add(`webhooks.${digest(owner)}`, item, `${keyOf(owner, id)}.${round}`)) return delivery
    const failed: Delivery.Delivery = { ...delivery, status: "failed", outcome: "too many events wait" }
    yield* write(owner, failed)
    return failed
  })

  return {
    /** Stores and queues the event. May be repeated. */
    add: Effect.fn("Deliveries.add")(function*(owner: string, event: Delivery.Event) {
      const delivery = Delivery.make(event, yield* Clock.currentTimeMillis)
      if (!(yield* bucket.create(keyOf(owner, event.id), Delivery.encode(delivery)))) {
        const stored = yield* find(owner, event.id)
        if (Option.isNone(stored) || stored.value.status !== "pending" || stored.value.attempts > 0) return
      }
      yield* submit(owner, delivery)
    }),
    /** At most `count` deliveries: those that changed last, the latest event first. */
    list: Effect.fn("Deliveries.list")(function*(owner: string, count: number) {
      const records = yield* bucket.latest(`${digest(owner)}.*`, count)
      return records
        .flatMap(({ value }) =>
          Option.toArray(Option.flatMap(value, (bytes) => Delivery.decode(Buffer.from(bytes).toString())))
        )
        .toSorted(newestFirst)
    }),
    /** Starts again with a new day of attempts. `None` if the event is unknown or has expired. */
    resend: Effect.fn("Deliveries.resend")(function*(owner: string, id: string) {
      const found = yield* find(owner, id)
      if (Option.isNone(found)) return Option.none<Delivery.Delivery>()
      const delivery = Delivery.restart(found.value, yield* Clock.currentTimeMillis)
      yield* write(owner, delivery)
      return Option.some(yield* submit(owner, delivery))
    }),
    /** Stores the outcome of an attempt. `false` if an administrator has sent the event again in the meantime. */
    settle: ({ owner, revision }: Due, delivery: Delivery.Delivery) =>
      Effect.map(bucket.update(keyOf(owner, delivery.id), Delivery.encode(delivery), revision), Option.isSome),
    /** Waits for an item; see `WorkQueue`. */
    next: queue.next,
    /** The delivery of an item; `None` if there is nothing to do. */
    dueOf: ({ text }: WorkItem): Effect.Effect<Option.Option<Due>, JetStreamFailed> =>
      Option.match(decodeItem(text), {
        onNone: () => Effect.succeedNone,
        onSome: ({ id, owner, round }) =>
          Effect.map(
            bucket.getRevision(keyOf(owner, id)),
            Option.flatMap(({ revision, value }) =>
              Delivery.decode(value).pipe(
                Option.filter((delivery) => delivery.round === round && delivery.status === "pending"),
                Option.map((delivery) => ({ owner, delivery, revision }))
              )
            )
          )
      })
  }
})
