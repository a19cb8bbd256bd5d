/** The faults: each affects one process of a gateway for a while, and is then undone. */
import { type Gateway, otherWorkloads, type ServiceProcess } from "../fixture/gateway/Gateway.ts"
import type { NatsAddress, NatsServer } from "../fixture/nats/NatsServer.ts"

export interface Ground {
  readonly gateway: Gateway<NatsAddress>
  /** A single server, or those of a cluster. */
  readonly servers: ReadonlyArray<NatsServer>
}

export type Victim = ServiceProcess | NatsServer

interface Target {
  readonly victim: Victim
  /** Injects the fault; returns how to undo it. */
  readonly strike: () => Promise<() => Promise<unknown>>
}

interface Fault {
  /** The longest duration, in milliseconds. */
  readonly mostMs: number
  /** Whether the process ends and another replaces it. */
  readonly ends: boolean
  /** The processes that the fault can affect now. */
  readonly targets: (ground: Ground) => ReadonlyArray<Target>
}

const roles = {
  worker: {
    all: ({ gateway }: Ground) => gateway.workers,
    another: ({ gateway }: Ground) => gateway.startWorker()
  },
  ingress: {
    all: ({ gateway }: Ground) => gateway.ingresses,
    another: ({ gateway }: Ground) => gateway.startIngress()
  },
  batches: {
    all: ({ gateway }: Ground) =>
      gateway.processes.filter(({ hasBeenReady, name }) => name === "batches" && hasBeenReady),
    another: ({ gateway }: Ground) => gateway.startWorker({}, "batches")
  },
  otherWorkers: {
    all: ({ gateway }: Ground) =>
      gateway.processes.filter(({ hasBeenReady, name }) => otherWorkloads.includes(name) && hasBeenReady),
    another: ({ gateway }: Ground, { name }: ServiceProcess) => gateway.startWorker({}, name)
  }
} as const

type Role = keyof typeof roles

/** A fault of a service, which `end` undoes; without `end` the process ends, and another replaces it. */
const toService = (
  role: Role,
  mostMs: number,
  begin: (victim: ServiceProcess) => unknown,
  end?: (victim: ServiceProcess) => void
): Fault => ({
  mostMs,
  ends: end === undefined,
  targets: (ground) =>
    roles[role].all(ground).filter(({ hasExited }) => !hasExited).map((victim) => ({
      victim,
      strike: async () => {
        await begin(victim)
        return end === undefined ? () => roles[role].another(ground, victim) : async () => end(victim)
      }
    }))
})

const toServer = (begin: (victim: NatsServer) => unknown, end: (victim: NatsServer) => unknown): Fault => ({
  mostMs: 4_000,
  ends: false,
  targets: ({ servers }) =>
    servers.filter(({ pid }) => pid !== undefined).map((victim) => ({
      victim,
      strike: async () => {
        await begin(victim)
        return async () => end(victim)
      }
    }))
})

const frozen = [(victim: ServiceProcess) => victim.freeze(), (victim: ServiceProcess) => victim.thaw()] as const
const cut = [(victim: ServiceProcess) => victim.cut(), (victim: ServiceProcess) => victim.mend()] as const
const held = [(victim: ServiceProcess) => victim.hold(), (victim: ServiceProcess) => victim.mend()] as const

export const faults = {
  "kill -9 a worker": toService("worker", 1_000, (victim) => victim.kill()),
  "stop a worker": toService("worker", 1_000, (victim) => victim.terminate()),
  "freeze a worker": toService("worker", 6_000, ...frozen),
  "disconnect a worker": toService("worker", 4_000, ...cut),
  "stall a worker's connection": toService("worker", 6_000, ...held),
  "kill -9 a worker of another workload": toService("otherWorkers", 1_000, (victim) => victim.kill()),
  "kill -9 an ingress": toService("ingress", 1_000, (victim) => victim.kill()),
  "stop an ingress": toService("ingress", 1_000, (victim) => victim.terminate()),
  "freeze an ingress": toService("ingress", 4_000, ...frozen),
  "disconnect an ingress": toService("ingress", 4_000, ...cut),
  "stall an ingress's connection": toService("ingress", 4_000, ...held),
  "kill -9 a batch service": toService("batches", 1_000, (victim) => victim.kill()),
  "freeze a batch service": toService("batches", 6_000, ...frozen),
  "kill -9 a NATS server": toServer((victim) => victim.kill(), (victim) => victim.restart()),
  "freeze a NATS server": toServer((victim) => victim.freeze(), (victim) => victim.thaw())
} satisfies Record<string, Fault>

export type FaultName = keyof typeof faults
export const faultNames = Object.keys(faults) as ReadonlyArray<FaultName>
