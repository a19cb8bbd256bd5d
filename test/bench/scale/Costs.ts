/**
 * The measured cost of a job in each process. The costs come from the page that `npm run bench` wrote. Those of NATS are split by
 * kind of message, each of which is measured now, in bulk, on its own server.
 */
import { AckPolicy, jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream"
import { createInbox } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { firstRow } from "../Stacks.ts"

/** Microseconds of CPU time. */
export interface Costs {
  /** A job, in ingress and in its worker. */
  readonly ingress: number
  readonly worker: number
  /** A message in NATS: a job stored, delivered, acknowledged; a frame relayed. */
  readonly store: number
  readonly deliver: number
  readonly acknowledge: number
  readonly frame: number
  /** The ratio of a message's cost in mixed traffic to its cost in bulk. The four above include it. */
  readonly amongOthers: number
}

/** A job's other messages: its claim and its answer. */
const framesOfJob = 2

/**
 * How many messages of each kind to measure: the kernel counts CPU time in hundredths of a second, and a frame takes little.
 */
const count = 20_000
const frames = 10 * count
const body = new Uint8Array(2_048)

/** A server's CPU time so far, in microseconds. */
const cpuOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ")
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

const measureInBulk = async () => {
  const server = await NatsServer.start()
  const ingress = await connect({ servers: server.url })
  const worker = await connect({ servers: server.url })
  try {
    const manager = await jetstreamManager(worker)
    await manager.streams.add({
      name: "JOBS",
      subjects: ["jobs.>"],
      retention: RetentionPolicy.Workqueue,
      storage: StorageType.Memory
    })
    await manager.consumers.add("JOBS", { durable_name: "pool", ack_policy: AckPolicy.Explicit, max_ack_pending: -1 })
    const consumer = () => manager.consumers.info("JOBS", "pool")
    /** The server's CPU time per message while `act` runs. */
    const cost = async (act: () => Promise<unknown>, messages = count): Promise<number> => {
      const before = cpuOf(server.pid ?? 0)
      await act()
      return (cpuOf(server.pid ?? 0) - before) / messages
    }
    const store = await cost(async () => {
      for (let sent = 0; sent < count; sent++) ingress.publish("jobs.chat.default", body)
      await ingress.flush()
      await eventually(consumer, ({ num_pending }) => num_pending === count, 60_000)
    })
    const replies: Array<string> = []
    const deliver = await cost(() =>
      new Promise<void>((resolve) => {
        const inbox = createInbox()
        worker.subscribe(inbox, {
          callback: (_, { reply }) => {
            replies.push(reply ?? "")
            if (replies.length === count) resolve()
            // like sixteen workers that request four jobs each as slots become free
            else if (replies.length % 4 === 0) pull()
          }
        })
        const pull = () =>
          worker.publish("$JS.API.CONSUMER.MSG.NEXT.JOBS.pool", JSON.stringify({ batch: 4 }), { reply: inbox })
        for (let one = 0; one < 16; one++) pull()
      })
    )
    const acknowledge = await cost(async () => {
      for (const reply of replies) worker.publish(reply, "+ACK")
      await worker.flush()
      await eventually(consumer, ({ num_ack_pending }) => num_ack_pending === 0, 60_000)
    })
    const frame = await cost(
      () =>
        new Promise<void>((resolve) => {
          let heard = 0
          ingress.subscribe("r.>", { callback: () => void (++heard === frames && resolve()) })
          void ingress.flush().then(async () => {
            for (let sent = 0; sent < frames; sent++) {
              worker.publish("r.chat.ingress.job.1", body.subarray(0, 512))
              // no more in flight than a server reads from one client
              if (sent % 5_000 === 0) await worker.flush()
            }
          })
        }),
      frames
    )
    return { store, deliver, acknowledge, frame }
  } finally {
    await Promise.all([ingress.close(), worker.close()])
    await server.remove()
  }
}

/** The row of the gateway's CPU time under load in the benchmark's page: ingress, worker, NATS. */
const rowPattern = new RegExp(String.raw`^\| ${firstRow.name} \| gateway \| (\d+) \| (\d+) \| (\d+) \|`, "m")

export const measure = async (): Promise<Costs> => {
  const page = readFileSync(join(import.meta.dirname, "../results/latest.md"), "utf8")
  const [ingress, worker, nats] = (rowPattern.exec(page) ?? []).slice(1).map(Number)
  if (ingress === undefined || worker === undefined || nats === undefined) {
    throw new Error("latest.md has no row of the gateway's CPU time: run npm run bench first")
  }
  const bulk = await measureInBulk()
  const amongOthers = nats / (bulk.store + bulk.deliver + bulk.acknowledge + framesOfJob * bulk.frame)
  return {
    ingress,
    worker,
    store: bulk.store * amongOthers,
    deliver: bulk.deliver * amongOthers,
    acknowledge: bulk.acknowledge * amongOthers,
    frame: bulk.frame * amongOthers,
    amongOthers
  }
}
