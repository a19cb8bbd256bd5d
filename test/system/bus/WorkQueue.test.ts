/** A queue of work gives each item to one process that waits for it. */
import { jetstreamManager } from "@nats-io/jetstream"
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Fiber, Layer, Option } from "effect"
import { Nats } from "../../../shared/nats/Nats.ts"
import { queues } from "../../../shared/nats/Storage.ts"
import * as WorkQueue from "../../../shared/nats/WorkQueue.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

it.live("an item that comes for a process which waits no more goes to another at once", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const context = yield* Layer.build(Nats.layer).pipe(
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })))
    )
    const { connection } = Context.get(context, Nats)
    const queue = yield* WorkQueue.openQueue(queues.webhooks).pipe(Effect.provideContext(context))
    const { consumers } = yield* Effect.promise(() => jetstreamManager(connection))
    const untilWaiting = (count: number) =>
      Effect.promise(() =>
        eventually(
          async () => (await consumers.info(queues.webhooks.name, WorkQueue.consumerName)).num_waiting,
          (waiting) => waiting === count
        )
      )
    const waiting = yield* Effect.forkChild(queue.next)
    yield* untilWaiting(1)
    yield* Fiber.interrupt(waiting)
    yield* queue.add("webhooks.a", "item", "1")
    // `next` waits for half a minute, and the queue for a minute until it delivers an unsettled item again
    const item = yield* queue.next
    assert.strictEqual(Option.getOrThrow(item).text, "item")
  }))
