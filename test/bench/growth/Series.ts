/** The dimensions in which a gateway grows, and the expected cost of a request at each size. */
import { Effect } from "effect"
import type { Request } from "../Load.ts"
import type { Gateway, Model } from "../Stacks.ts"
import { firstRow } from "../Stacks.ts"

export interface Series<E, R> {
  readonly name: string
  /** Whether the cost should stay the same or grow with the size. */
  readonly expected: "flat" | "linear"
  readonly sizes: ReadonlyArray<number>
  /**
   * Grows the gateway to this size and returns the requests to send. `before` is the previous size, 0 at first, and `sent` the
   * previous requests.
   */
  readonly grow: (
    gateway: Gateway,
    size: number,
    before: number,
    sent: ReadonlyArray<Request>
  ) => Effect.Effect<ReadonlyArray<Request>, E, R>
  /**
   * Whether growth starts processes. New processes need a warm-up and proportionally more connections: the cost of each
   * depends on its work per turn of the event loop.
   */
  readonly startsProcesses?: boolean
}

const define = <E, R>(series: Series<E, R>): Series<E, R> => series

const ask = (key: string, body: Partial<Request["body"]> = {}): Request => ({
  key,
  body: { ...firstRow.body, ...body }
})

const numbered = <A>(count: number, of: (index: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, index) => of(index))

const model = (name: string, targets = 1): Model => ({ name, workload: "chat", targets })
const usual = model(firstRow.body.model)

const messages = define({
  name: "messages of a conversation",
  expected: "linear",
  sizes: [10, 100, 1_000],
  grow: ({ stack: { key } }, size) =>
    Effect.succeed([ask(key, {
      messages: numbered(size, (index) => ({
        role: index % 2 === size % 2 ? "assistant" : "user",
        content: `This is message ${index} of a conversation about gateways in front of models.`
      }))
    })])
})

// models have other names at each size, so that each edit changes the catalogue
const models = define({
  name: "models, all in use",
  expected: "flat",
  sizes: [1, 50, 500],
  grow: Effect.fn("Series.models")(function*({ serve, stack }, size) {
    const all = numbered(size, (index) => model(`one-of-${size}-${index}`))
    yield* serve([usual, ...all])
    return all.map(({ name }) => ask(stack.key, { model: name }))
  })
})

const targets = define({
  name: "targets of a model",
  expected: "flat",
  sizes: [1, 10, 50],
  grow: Effect.fn("Series.targets")(function*({ serve, stack }, size) {
    const wide = model(`with-${size}-targets`, size)
    yield* serve([usual, wide])
    return [ask(stack.key, { model: wide.name })]
  })
})

const keys = define({
  name: "keys, all in use",
  expected: "flat",
  sizes: [10, 100, 1_000, 10_000],
  grow: Effect.fn("Series.keys")(
    function*({ addKeys }, size, before, sent) {
      const added = yield* addKeys(size - before)
      return [...sent, ...added.map((key) => ask(key))]
    }
  )
})

const workers = define({
  name: "workers of a workload",
  expected: "flat",
  sizes: [1, 2, 4, 8],
  grow: Effect.fn("Series.workers")(function*({ addWorker, stack }, size, before) {
    // the gateway starts with one worker
    yield* Effect.forEach(numbered(size - Math.max(before, 1), () => "chat" as const), addWorker)
    return [ask(stack.key)]
  }),
  startsProcesses: true
})

export const series = [messages, models, targets, keys, workers]
