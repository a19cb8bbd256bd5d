/** The gateway's processes on simulated machines: the shipped code from the bus's client and the worker's job life down to NATS. */
import { ConfigProvider, Effect, type Fiber, Layer, Logger } from "effect"
import { Presence } from "../../../shared/bus/provision/Presence.ts"
import { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import { JobServer } from "../../../shared/bus/worker/JobServer.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { UsageLog } from "../../../shared/usage/UsageLog.ts"
import { Performer } from "../../../shared/worker/JobLife.ts"
import { Worker } from "../../../shared/worker/Worker.ts"
import type { Cluster } from "../nats/Cluster.ts"
import type { Provider } from "./Provider.ts"
import { Machine, type World } from "../world/World.ts"

/** What a process logs becomes a part of the story. */
const storyOf = (world: World, machine: Machine) =>
  Logger.layer([
    Logger.make(({ logLevel, message }) => {
      world.trace.tell(machine.name, `${logLevel}: ${JSON.stringify(message).slice(0, 200)}`)
    })
  ])

const surroundings = (world: World, machine: Machine, cluster: Cluster, settings: Readonly<Record<string, string>>) =>
  Layer.mergeAll(
    storyOf(world, machine),
    ConfigProvider.layer(ConfigProvider.fromUnknown({
      NATS_URL: cluster.url,
      NATS_REPLICAS: `${cluster.servers.length}`,
      ...settings
    }))
  )

abstract class GatewayProcess {
  readonly world: World
  readonly cluster: Cluster
  readonly machine: Machine
  isReady = false
  /** When it has ended after `terminate`. */
  endedAt: number | undefined
  #fiber: Fiber.Fiber<unknown, unknown> | undefined

  constructor(world: World, cluster: Cluster, name: string) {
    this.world = world
    this.cluster = cluster
    this.machine = new Machine(name)
  }

  /** Runs until it is interrupted. */
  abstract readonly run: () => Fiber.Fiber<unknown, unknown>

  start(): void {
    this.world.trace.tell(this.machine.name, "starts")
    this.world.on(this.machine, () => {
      this.#fiber = this.run()
      this.#fiber.addObserver((exit) => {
        this.endedAt = this.world.now
        this.world.trace.tell(this.machine.name, `ended: ${exit._tag}`)
        this.machine.kill()
      })
    })
  }

  /** Like SIGTERM. */
  terminate(): void {
    this.world.trace.tell(this.machine.name, "gets SIGTERM")
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

export class IngressProcess extends GatewayProcess {
  client: JobClient["Service"] | undefined

  readonly run = () =>
    Effect.runFork(
      Effect.gen({ self: this }, function*() {
        this.client = yield* JobClient
        this.isReady = true
        this.world.trace.tell(this.machine.name, "is ready")
        return yield* Effect.never
      }).pipe(
        Effect.provide(
          JobClient.layer.pipe(
            Layer.provide(Nats.layerPatient),
            Layer.provideMerge(surroundings(this.world, this.machine, this.cluster, {}))
          )
        )
      )
    )
}

export class WorkerProcess extends GatewayProcess {
  readonly slots: number
  readonly provider: Provider

  constructor(world: World, cluster: Cluster, name: string, slots: number, provider: Provider) {
    super(world, cluster, name)
    this.slots = slots
    this.provider = provider
  }

  readonly run = () =>
    Effect.runFork(
      Effect.gen({ self: this }, function*() {
        const worker = yield* Worker
        yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => worker.isReady() })
        this.isReady = true
        this.world.trace.tell(this.machine.name, "is ready")
        return yield* Effect.never
      }).pipe(
        Effect.provide(
          Worker.layer("chat", this.slots).pipe(
            Layer.provide([
              Layer.succeed(Performer, this.provider.performer(this.machine)),
              JobServer.layer,
              UsageLog.layer,
              Presence.layer
            ]),
            Layer.provide(Nats.layerPatient),
            Layer.provideMerge(surroundings(this.world, this.machine, this.cluster, {
              WORKER_SLOTS: `${this.slots}`,
              WORKER_GRACE_MS: "20000"
            }))
          )
        )
      )
    )
}
