/**
 * Workers of video tasks that die, and a NATS server that does, at every step of a task's life: one task at the provider,
 * one video, one usage event, and where nobody knows whether the provider was asked, an honest error.
 */
import { assert, it } from "@effect/vitest"
import type { Place } from "../../fixture/nats/Cable.ts"
import { Gateway, type ServiceProcess } from "../../fixture/gateway/Gateway.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { storedEvents } from "../../fixture/nats/UsageEvents.ts"
import { VideoClient } from "../../fixture/client/VideoClient.ts"
import { videoModels } from "../../fixture/gateway/VideoModels.ts"

/** The record of a task as a worker writes it, by what is in it. */
const record = (text: string) => new RegExp(`PUB \\$KV\\.VIDEO_TASKS\\.[^]*${text}`)
const starting = record(`"task":null`)
const started = record(`"task":[^n]`)

/** What a worker sends to NATS for a task, in its order, and on which side of it the worker is stopped. */
const steps = {
  "it is not claimed": ["before", record(`"status":"in_progress"`)],
  "it is claimed": ["before", starting],
  "it is about to be given to the provider": ["after", starting],
  "the provider has it, which is not written down": ["before", started],
  "the provider's name for it is written down": ["after", started],
  "the video is here": ["before", /PUB \$O\.VIDEO_CONTENT\.C\./],
  "the video is stored": ["before", record(`"status":"completed"`)],
  "it is completed": ["before", /PUB usage\.video/],
  "it is metered": ["before", /PUB \$JS\.ACK\.JOBS_VIDEO\.[^]*\+ACK/]
} as const
type Step = keyof typeof steps

interface Stopped {
  readonly step: Step
  readonly worker: ServiceProcess
  readonly id: string
}

/** Stops the worker at that step of its next task. */
const stopAt = async (worker: ServiceProcess, step: Step): Promise<Stopped> => {
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

const submissions = ({ provider }: Gateway): number =>
  provider.requests.filter(({ path }) => path.endsWith("/video-synthesis")).length

/** Gives each worker a task, at another step of which it stops. */
const stopAtEach = async (
  client: VideoClient,
  workers: ReadonlyArray<ServiceProcess>
): Promise<ReadonlyArray<Stopped>> => {
  const stopped = workers.map((worker, index) => stopAt(worker, names[index]!))
  const wish = { model: "paid-video", prompt: "a boat", duration: 2, width: 832, height: 480 }
  await Promise.all(workers.map(() => client.create(wish)))
  return Promise.all(stopped)
}

const completed = { status: "completed", progress: 100, error: null }

/** NATS dies and comes back: every worker goes on. Returns for how many tasks the provider is asked, once each. */
const serverDies = async (gateway: Gateway, client: VideoClient, stopped: ReadonlyArray<Stopped>) => {
  await gateway.nats.kill()
  for (const { worker } of stopped) worker.mend()
  await gateway.nats.restart()
  for (const { id, step } of stopped) assert.deepInclude(await client.ended(id), completed, step)
  return stopped.length
}

/** The provider was about to be asked, or had been asked, and nobody has written down which. */
const unknown: ReadonlyArray<Step> = [
  "it is about to be given to the provider",
  "the provider has it, which is not written down"
]

/** All workers die: another one ends every task. Returns the same. */
const workersDie = async (gateway: Gateway, client: VideoClient, stopped: ReadonlyArray<Stopped>) => {
  await Promise.all(stopped.map(({ worker }) => worker.kill()))
  await gateway.startWorker({ WORKER_SLOTS: String(stopped.length) }, "video")
  for (const { id, step } of stopped) {
    const task = await client.ended(id)
    if (unknown.includes(step)) {
      assert.strictEqual(task.status, "failed", step)
      assert.strictEqual(task.error?.code, "upstream_error")
    } else {
      assert.deepInclude(task, completed, step)
      assert.isAbove((await client.content(id)).bytes.length, 0)
    }
  }
  // the one that was about to be given to it never was
  return stopped.length - 1
}

it.live(
  "at every step of a video task's life NATS can die, and so can its worker",
  () =>
    Gateway.run({ ...videoModels, wired: true }, async (gateway) => {
      const client = new VideoClient(gateway)
      const workers = await Promise.all(names.map(() => gateway.startWorker({ WORKER_SLOTS: "1" }, "video")))
      let asked = 0
      let tasks = 0
      for (const die of [serverDies, workersDie]) {
        asked += await die(gateway, client, await stopAtEach(client, workers))
        tasks += names.length
        assert.strictEqual(submissions(gateway), asked)
        await untilNoJobs(gateway.nats, 30_000, "video")
        assert.strictEqual(await storedEvents(gateway.nats), tasks)
      }
    }),
  180_000
)
