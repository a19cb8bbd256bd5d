/**
 * Workers of video tasks and a NATS server that die at every step of a task: one task at the provider, one video and one usage
 * event, or an honest error if it is unknown whether the provider was called.
 */
import { assert, it } from "@effect/vitest"
import type { Place } from "../../fixture/nats/Cable.ts"
import { type AnyGateway, Gateway } from "../../fixture/gateway/Gateway.ts"
import type { ServiceHere } from "../../fixture/gateway/ServiceHere.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { expireClaims } from "../../fixture/nats/LostWorkers.ts"
import type { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { storedEvents } from "../../fixture/nats/UsageEvents.ts"
import { VideoClient } from "../../fixture/client/VideoClient.ts"
import { videoModels } from "../../fixture/gateway/VideoModels.ts"

/** Matches a worker's write of a task's record that contains the text. */
const record = (text: string) => new RegExp(`PUB \\$KV\\.VIDEO_TASKS\\.[^]*${text}`)
const starting = record(`"task":null`)
const started = record(`"task":[^n]`)

/** What a worker sends to NATS for a task, in order, and whether the worker stops before or after it. */
const steps = {
  "before its claim": ["before", record(`"status":"in_progress"`)],
  "claimed": ["before", starting],
  "about to be submitted": ["after", starting],
  "submitted, but not recorded": ["before", started],
  "submitted and recorded": ["after", started],
  "video received": ["before", /PUB \$O\.VIDEO_CONTENT\.C\./],
  "video stored": ["before", record(`"status":"completed"`)],
  "completed": ["before", /PUB usage\.video/],
  "metered": ["before", /PUB \$JS\.ACK\.JOBS_VIDEO\.[^]*\+ACK/]
} as const
type Step = keyof typeof steps

type GatewayHere = Gateway<NatsServer, ServiceHere>

interface Stopped {
  readonly step: Step
  readonly worker: ServiceHere
  readonly id: string
}

/** Stops the worker at that step of its next task. */
const stopAt = async (worker: ServiceHere, step: Step): Promise<Stopped> => {
  const [side, pattern] = steps[step]
  let id = ""
  const place: Place = (command) => {
    id = /^H?PUB \$KV\.VIDEO_TASKS\.(\w+)/.exec(command)?.[1] ?? id
    return pattern.test(command) ? side : undefined
  }
  await worker.holdAt(place)
  return { step, worker, id }
}

const names = Object.keys(steps) as ReadonlyArray<Step>

const submissions = ({ provider }: AnyGateway): number =>
  provider.requests.filter(({ path }) => path.endsWith("/video-synthesis")).length

/** Gives each worker a task, and stops each at another step of it. */
const stopAtEach = async (
  client: VideoClient,
  workers: ReadonlyArray<ServiceHere>
): Promise<ReadonlyArray<Stopped>> => {
  const stopped = workers.map((worker, index) => stopAt(worker, names[index]!))
  const wish = { model: "paid-video", prompt: "a boat", duration: 2, width: 832, height: 480 }
  await Promise.all(workers.map(() => client.create(wish)))
  return Promise.all(stopped)
}

const completed = { status: "completed", progress: 100, error: null }

/** NATS dies and restarts: every worker continues. Returns the number of tasks submitted to the provider, once each. */
const killServer = async (gateway: GatewayHere, client: VideoClient, stopped: ReadonlyArray<Stopped>) => {
  await gateway.nats.kill()
  for (const { worker } of stopped) worker.mend()
  await gateway.nats.restart()
  for (const { id, step } of stopped) assert.deepInclude(await client.untilEnded(id), completed, step)
  return stopped.length
}

/** At these steps the record does not say whether the provider was called. */
const unknown: ReadonlyArray<Step> = [
  "about to be submitted",
  "submitted, but not recorded"
]

/** All workers die: another one finishes every task. Returns the number of tasks submitted to the provider. */
const killWorkers = async (gateway: GatewayHere, client: VideoClient, stopped: ReadonlyArray<Stopped>) => {
  for (const { worker } of stopped) worker.kill()
  await expireClaims(gateway.nats, "video")
  await gateway.startWorker({ WORKER_SLOTS: String(stopped.length) }, "video")
  for (const { id, step } of stopped) {
    const task = await client.untilEnded(id)
    if (unknown.includes(step)) {
      assert.strictEqual(task.status, "failed", step)
      assert.strictEqual(task.error?.code, "upstream_error")
    } else {
      assert.deepInclude(task, completed, step)
      assert.isAbove((await client.content(id)).bytes.length, 0)
    }
  }
  // the task that was not yet submitted never is
  return stopped.length - 1
}

it.live(
  "a video task survives the loss of NATS or of its worker at every step",
  () =>
    Gateway.runHere({ ...videoModels, wired: true }, async (gateway) => {
      const client = new VideoClient(gateway)
      const workers = await Promise.all(names.map(() => gateway.startWorker({ WORKER_SLOTS: "1" }, "video")))
      let asked = 0
      let tasks = 0
      for (const die of [killServer, killWorkers]) {
        asked += await die(gateway, client, await stopAtEach(client, workers))
        tasks += names.length
        assert.strictEqual(submissions(gateway), asked)
        await untilNoJobs(gateway.nats, "video")
        assert.strictEqual(await storedEvents(gateway.nats), tasks)
      }
    })
)
