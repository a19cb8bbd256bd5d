/** The gateway's processes on simulated machines. They run the shipped code from the bus's client and the worker's job life to NATS. */
import { type Config, ConfigProvider, Effect, type Fiber, Layer, Logger, Option } from "effect"
import * as WorkAdmission from "../../../services/ingress/request/WorkAdmission.ts"
import { Admission } from "../../../services/ingress/request/Admission.ts"
import * as Turns from "../../../shared/bounds/Turns.ts"
import { Presence } from "../../../shared/bus/provision/Presence.ts"
import { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import { JobServer } from "../../../shared/bus/worker/JobServer.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import { layerBothPatient, Nats } from "../../../shared/nats/Nats.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { AnswerTasks } from "../../../shared/tasks/answers/AnswerTasks.ts"
import * as AnswerWorker from "../../../shared/tasks/answers/AnswerWorker.ts"
import { Tasks } from "../../../shared/tasks/Tasks.ts"
import { UsageLog } from "../../../shared/usage/UsageLog.ts"
import type { Performer } from "../../../shared/worker/JobLife.ts"
import { Worker } from "../../../shared/worker/Worker.ts"
import type { Cluster } from "../nats/Cluster.ts"
import { Machine, type World } from "../world/World.ts"

/** How many bytes of bodies an ingress holds. The default would depend on the machine. */
export const queueBytes = 64 * 1024 * 1024

/** How long the jobs of a worker that is deployed may take, in milliseconds. */
export const workerGraceMs = 20_000

/** How many bytes of pulled bodies a worker holds: few enough that jobs wait for room. */
export const workerBodyBytes = 1_500_000

/** A logger that adds a process's log lines to the trace. */
const storyOf = (world: World, machine: Machine) =>
  Logger.layer([
    Logger.make(({ logLevel, message }) => {
      world.trace.tell(machine.name, `${logLevel}: ${JSON.stringify(message).slice(0, 200)}`)
    })
  ])

/** A process's logger, configuration and event loop. The loop is not shared, because it ends with the process. */
export const surroundings = (
  world: World,
  machine: Machine,
  cluster: Cluster,
  settings: Readonly<Record<string, string>>
) =>
  Layer.mergeAll(
    storyOf(world, machine),
    Layer.sync(Turns.Turns, Turns.makeUnsafe),
    ConfigProvider.layer(ConfigProvider.fromUnknown({
      NATS_URL: cluster.url,
      NATS_REPLICAS: `${cluster.servers.length}`,
      GATEWAY_SECRET: "a secret of more than thirty-two characters",
      ...settings
    }))
  )

export abstract class GatewayProcess {
  readonly world: World
  readonly cluster: Cluster
  readonly machine: Machine
  isReady = false
  /** Runs if the process ends by itself, like a service that cannot start. */
  onFailure: () => void = () => undefined
  #isStopping = false
  terminatedAt: number | undefined
  endedAt: number | undefined
  #fiber: Fiber.Fiber<unknown, unknown> | undefined

  constructor(world: World, cluster: Cluster, name: string) {
    this.world = world
    this.cluster = cluster
    this.machine = new Machine(name)
  }

  /** Serves jobs until it is interrupted. */
  readonly serve = Effect.gen({ self: this }, function*() {
    const worker = yield* Worker
    yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => worker.isReady() })
    this.isReady = true
    this.world.trace.tell(this.machine.name, "is ready")
    return yield* Effect.never
  })

  /** Starts the process's code, which runs until it is interrupted. */
  abstract readonly run: () => Fiber.Fiber<unknown, unknown>

  start(): void {
    this.world.trace.tell(this.machine.name, "starts")
    this.world.on(this.machine, () => {
      this.#fiber = this.run()
      this.#fiber.addObserver((exit) => {
        this.endedAt = this.world.now
        this.world.trace.tell(this.machine.name, `ended: ${exit._tag}`)
        const isFailure = !this.#isStopping && this.machine.isAlive
        this.machine.kill()
        if (isFailure) this.onFailure()
      })
    })
  }

  /** Like SIGTERM. */
  terminate(): void {
    this.world.trace.tell(this.machine.name, "gets SIGTERM")
    this.#isStopping = true
    this.terminatedAt = this.world.now
    this.isReady = false
    this.world.on(this.machine, () => this.#fiber?.interruptUnsafe())
  }

  /** Like SIGKILL: its connections break. */
  kill(): void {
    this.world.trace.tell(this.machine.name, "is killed")
    this.isReady = false
    this.machine.kill()
    this.cluster.network.breakAll(this.machine)
  }
}

/** Admission of requests by the limits of keys, across all ingresses. */
const admission = Admission.layer.pipe(
  Layer.provideMerge(Limits.layerKeys),
  Layer.provide(Spending.layer),
  Layer.merge(KeyRing.layer)
)

/** Admission with tasks, whose work is admitted later. */
const admissionOfAll = Layer.merge(AnswerTasks.layer, Layer.provideMerge(WorkAdmission.layer, admission))

export interface Admitting {
  readonly admission: Admission["Service"]
  readonly keys: KeyRing["Service"]
  readonly limits: Limits["Service"]
}

/** The parts that an ingress offers besides jobs. */
export interface Offer {
  /** The window of the keys' limits per minute, in milliseconds; `undefined` if requests need no keys. */
  readonly limitWindowMs: number | undefined
  readonly hasTasks: boolean
  readonly hasAnswers: boolean
}

export class IngressProcess extends GatewayProcess {
  readonly #offer: Offer
  client: JobClient["Service"] | undefined
  /** Present if the ingress offers it. */
  admitting: Admitting | undefined
  tasks: Tasks["Service"] | undefined
  answers: AnswerTasks["Service"] | undefined

  constructor(world: World, cluster: Cluster, name: string, offer: Offer) {
    super(world, cluster, name)
    this.#offer = offer
  }

  readonly run = () => {
    const { hasAnswers, hasTasks, limitWindowMs } = this.#offer
    const around = surroundings(this.world, this.machine, this.cluster, {
      GATEWAY_LIMIT_WINDOW_MS: `${limitWindowMs ?? 60_000}`,
      GATEWAY_QUEUE_BYTES: `${queueBytes}`
    })
    const client = hasTasks ? Layer.merge(JobClient.layer, Tasks.layer("video")) : JobClient.layer
    const layer = limitWindowMs === undefined
      ? Layer.provide(client, Nats.layerPatient)
      : Layer.provide(Layer.mergeAll(client, hasAnswers ? admissionOfAll : admission), layerBothPatient)
    const serve = Effect.gen({ self: this }, function*() {
      this.client = yield* JobClient
      this.admitting = Option.getOrUndefined(Option.all({
        admission: yield* Effect.serviceOption(Admission),
        keys: yield* Effect.serviceOption(KeyRing),
        limits: yield* Effect.serviceOption(Limits)
      }))
      this.tasks = Option.getOrUndefined(yield* Effect.serviceOption(Tasks))
      this.answers = Option.getOrUndefined(yield* Effect.serviceOption(AnswerTasks))
      this.isReady = true
      this.world.trace.tell(this.machine.name, "is ready")
      return yield* Effect.never
    })
    return Effect.runFork(Effect.provide(serve, Layer.provideMerge(layer, around)))
  }
}

export class WorkerProcess extends GatewayProcess {
  readonly slots: number
  readonly #hasAnswers: boolean
  readonly #performer: (machine: Machine) => Layer.Layer<Performer, Config.ConfigError, Nats>

  constructor(
    world: World,
    cluster: Cluster,
    name: string,
    { hasAnswers, slots }: { readonly slots: number; readonly hasAnswers: boolean },
    performer: (machine: Machine) => Layer.Layer<Performer, Config.ConfigError, Nats>
  ) {
    super(world, cluster, name)
    this.slots = slots
    this.#hasAnswers = hasAnswers
    this.#performer = performer
  }

  readonly run = () =>
    Effect.runFork(
      this.serve.pipe(
        Effect.provide(
          Worker.layer("chat").pipe(
            Layer.merge(this.#hasAnswers ? AnswerWorker.layer("chat") : Layer.empty),
            Layer.provide([
              this.#performer(this.machine),
              JobServer.layer,
              UsageLog.layer,
              Presence.layer
            ]),
            Layer.provide(Nats.layerPatient),
            Layer.provideMerge(surroundings(this.world, this.machine, this.cluster, {
              WORKER_SLOTS: `${this.slots}`,
              WORKER_BODY_BYTES: `${workerBodyBytes}`,
              WORKER_GRACE_MS: `${workerGraceMs}`
            }))
          )
        )
      )
    )
}
