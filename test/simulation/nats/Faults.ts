/** Faults of NATS itself, and how long they last. */
import type { Cluster } from "./Cluster.ts"

export const natsFaultKinds = [
  "kill nats",
  "restart nats",
  "freeze nats",
  "cut nats",
  "isolate nats",
  "slow routes",
  "no stream leader",
  "stalled stream",
  "full stream",
  "lost confirmations",
  "consumer rolls back",
  "no consumer leader",
  "consumer forgets pulls",
  "jobs forget newest",
  "jobs forget all",
  "usage forgets newest"
] as const

/** Kinds that are drawn separately, so that other seeds do not change. */
const laterFaultKinds = ["full usage"] as const

export type NatsFaultKind =
  | typeof natsFaultKinds[number]
  | typeof laterFaultKinds[number]

/** How long a fault acts after its end, in milliseconds: until streams and consumers have leaders again. */
export const mostElectionMs = 9_000
/** How long it takes until the console has recreated a consumer that is ahead of its stream, in milliseconds, by number of servers. */
export const mostRepairMs = { several: 7_000, one: 22_000 }

/** How long a message between two servers may take while routes are slow, in milliseconds. */
export const mostSlowMs = 500

export interface NatsFault {
  readonly kind: NatsFaultKind
  readonly target: number
  /** In milliseconds; `undefined` until the caller heals it. */
  readonly ms: number | undefined
}

const usage = "USAGE"

/** Strikes, and heals after `ms` or with the returned function. */
export const strikeNats = (cluster: Cluster, { kind, ms, target }: NatsFault): (() => void) | undefined => {
  const { jetStream, network, world } = cluster
  const server = cluster.servers[target % cluster.servers.length]!
  const streams = [...jetStream.streams.values()]
  const queues = streams.filter(({ config: { name } }) => name.startsWith("JOBS"))
  // the queue in use
  const jobs = queues.find(({ messages }) => messages.size > 0) ?? queues[0]
  const stream = streams[target % Math.max(1, streams.length)]
  const consumers = streams.flatMap(({ consumers }) => [...consumers.values()])
  const consumer = consumers[target % Math.max(1, consumers.length)]
  const heal = (run: () => void) => {
    if (ms !== undefined) world.after(ms, undefined, run)
    return run
  }
  const stop = () => {
    server.kill()
    jetStream.serverLost()
    return heal(() => {
      server.restart()
      jetStream.serverBack(server)
      world.trace.tell(server.name, "is back")
    })
  }
  switch (kind) {
    case "kill nats":
      return server.isUp ? stop() : undefined
    case "restart nats":
      if (!server.isUp) return undefined
      for (const { consumers, group } of streams) {
        for (const led of [group, ...[...consumers.values()].map(({ group }) => group)]) {
          if (led.leader === server) led.stepDown()
        }
      }
      return stop()
    case "freeze nats": {
      if (!server.isUp) return undefined
      const { machine } = server
      machine.freeze()
      jetStream.review()
      return heal(() => {
        machine.thaw(world)
        jetStream.review()
      })
    }
    case "cut nats":
      network.breakAll(server.machine)
      return undefined
    case "isolate nats":
      if (server.isIsolated || cluster.servers.length === 1) return undefined
      cluster.isolate(server, world.random.chance(0.5))
      return heal(() => cluster.rejoin(server))
    case "slow routes":
      cluster.slowMs = world.random.between(5, mostSlowMs)
      return heal(() => void (cluster.slowMs = 0))
    case "no stream leader":
      stream?.group.stepDown()
      return undefined
    case "no consumer leader":
      consumer?.group.stepDown()
      return undefined
    case "stalled stream":
      stream?.stall()
      return heal(() => stream?.resume())
    case "full stream":
      if (stream === undefined) return undefined
      stream.isFull = true
      return heal(() => void (stream.isFull = false))
    case "full usage": {
      const events = streams.find(({ config }) => config.name === usage)
      if (events === undefined) return undefined
      events.isFull = true
      return heal(() => void (events.isFull = false))
    }
    case "lost confirmations":
      if (stream === undefined) return undefined
      stream.losesAcks = true
      return heal(() => void (stream.losesAcks = false))
    case "consumer forgets pulls":
      consumer?.forgetPulls(world.random.chance(0.5))
      return undefined
    case "consumer rolls back":
      consumer?.rollBack()
      return undefined
    case "usage forgets newest":
      streams.find(({ config }) => config.name === usage)?.forgetNewest(world.random.integer(1, 5))
      return undefined
    case "jobs forget newest":
      jobs?.forgetNewest(world.random.integer(1, 5))
      return undefined
    case "jobs forget all":
      jobs?.forgetAll()
      return undefined
  }
}
