/** A batch that runs while faults are injected: each of its requests has one result and one usage event, and none is paid for twice. */
import { ends } from "../../shared/batches/BatchRecord.ts"
import { BatchClient } from "../fixture/batches/BatchClient.ts"
import type { Load } from "../fixture/client/Load.ts"
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import { eventually } from "../fixture/general/Eventually.ts"
import type { NatsAddress } from "../fixture/nats/NatsServer.ts"
import { eventsIn } from "../fixture/nats/UsageEvents.ts"

export interface BatchReport {
  readonly lines: number
  readonly answers: number
  /** By code. */
  readonly errors: Readonly<Record<string, number>>
  /** Calls to the provider. */
  readonly calls: number
  readonly events: number
  /** Calls whose bill is in no event, because no worker that lived knew it. */
  readonly billedUnknown: number
  /** What should not be. */
  readonly wrong: ReadonlyArray<string>
}

/** How long a batch may take after the last fault has ended, in milliseconds. */
const patienceMs = 300_000

/** Input and output, as an answer or an event names them. */
const tokensOf = (usage: object): number =>
  Object.entries(usage)
    .filter(([name]) => /^(?:prompt|completion|input|output)_?tokens$/iu.test(name))
    .reduce((sum, [, tokens]) => sum + Number(tokens), 0)

const count = (names: ReadonlyArray<string>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

export class ChaosBatch {
  readonly #gateway: Gateway<NatsAddress>
  readonly #load: Load
  readonly #client: BatchClient
  readonly #id: string
  readonly #lines: number
  #done = 0

  private constructor(gateway: Gateway<NatsAddress>, load: Load, client: BatchClient, id: string, lines: number) {
    this.#gateway = gateway
    this.#load = load
    this.#client = client
    this.#id = id
    this.#lines = lines
  }

  static async start(
    gateway: Gateway<NatsAddress>,
    load: Load,
    lines: number,
    model = "paid-chat"
  ): Promise<ChaosBatch> {
    const client = new BatchClient({
      key: gateway.key,
      get url() {
        return (gateway.ingresses.findLast(({ hasExited }) => !hasExited) ?? gateway.ingress).url
      }
    })
    const { id } = await client.create(model, lines)
    return new ChaosBatch(gateway, load, client, id, lines)
  }

  /** `true` also while no ingress tells. */
  async isRunning(): Promise<boolean> {
    const got = this.#client.get(this.#id).then(({ request_counts: { completed, failed }, status }) => {
      this.#done = completed + failed
      return !ends.some((end) => end === status)
    }, () => true)
    return Promise.race([got, new Promise<boolean>((resolve) => setTimeout(resolve, 1_000, true))])
  }

  /** How many of its requests had a result when it was last seen. */
  get done(): number {
    return this.#done
  }

  async report(): Promise<BatchReport> {
    const wrong: Array<string> = []
    const batch = await this.#client.ended(this.#id, patienceMs)
    if (batch.status !== "completed") wrong.push(`the batch is ${batch.status}`)
    // each `custom_id` once
    const { answers, errors } = await this.#client.results(batch)
    const mine = async () => (await eventsIn(this.#gateway.nats)).filter(({ id }) => id.startsWith(this.#id))
    const events = await eventually(mine, ({ length }) => length >= this.#lines, 60_000)
    if (events.length > this.#lines) wrong.push(`${events.length} usage events`)

    const calls = Array.from({ length: this.#lines }, (_, line) => this.#load.calls.get(`question ${line}.`) ?? 0)
    const twice = calls.flatMap((count, line) => count > 1 ? [line] : [])
    if (twice.length > 0) wrong.push(`paid twice: requests ${twice.slice(0, 10).join(", ")}`)
    const sum = calls.reduce((total, count) => total + count, 0)
    const successes = events.filter(({ outcome }) => outcome === "success")
    if (successes.length !== answers.length) wrong.push(`${successes.length} events of ${answers.length} answers`)
    const billed = answers.reduce((total, { response }) => total + tokensOf(response?.body["usage"] ?? {}), 0)
    const metered = successes.reduce((total, { usage }) => total + tokensOf(usage ?? {}), 0)
    if (billed !== metered) wrong.push(`${metered} tokens in usage of ${billed} in answers`)
    return {
      lines: this.#lines,
      answers: answers.length,
      errors: count(errors.map(({ error }) => error?.code ?? "none")),
      calls: sum,
      events: events.length,
      billedUnknown: sum - successes.length,
      wrong
    }
  }
}
