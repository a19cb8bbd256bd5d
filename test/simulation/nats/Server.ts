/**
 * A simulated NATS server: delivers at most once and in order per connection. Interest in a subject spreads to the other servers
 * with delay. A client whose message has no listener gets a 503, which is wrong if interest has not spread yet.
 */
import type { Connection } from "../world/Network.ts"
import { Machine } from "../world/World.ts"
import type { Cluster } from "./Cluster.ts"
import { deliver, info, matches, type Message, pong, Reader, status } from "./Protocol.ts"

interface Subscription {
  readonly client: Client
  readonly sid: string
  readonly subject: string
  readonly tokens: ReadonlyArray<string>
  /** How many messages it still gets. */
  left: number
}

interface Client {
  readonly connection: Connection
  readonly subscriptions: Map<string, Subscription>
}

/** Subjects with their tokens and how often each is subscribed to. */
class Interest {
  readonly #subjects = new Map<string, { readonly tokens: ReadonlyArray<string>; count: number }>()

  add(subject: string): void {
    const known = this.#subjects.get(subject)
    if (known === undefined) this.#subjects.set(subject, { tokens: subject.split("."), count: 1 })
    else known.count++
  }

  remove(subject: string): void {
    const known = this.#subjects.get(subject)
    if (known !== undefined && --known.count === 0) this.#subjects.delete(subject)
  }

  has(tokens: ReadonlyArray<string>): boolean {
    for (const known of this.#subjects.values()) if (matches(known.tokens, tokens)) return true
    return false
  }
}

export class Server {
  readonly cluster: Cluster
  readonly name: string
  readonly port: number
  machine: Machine
  #clients = new Set<Client>()
  #subscriptions = new Set<Subscription>()
  /** The interest of the other servers, as far as this one knows it. */
  #remote = new Map<Server, Interest>()
  /** Whether nothing passes between it and the others. */
  isIsolated = false
  /** The number of each route, which changes when it is made again; `undefined` while the route is broken. */
  readonly #routes = new Map<Server, number | undefined>()
  #meetings = 0

  constructor(cluster: Cluster, name: string, port: number) {
    this.cluster = cluster
    this.name = name
    this.port = port
    this.machine = new Machine(name)
    this.#listen()
  }

  get isUp(): boolean {
    return this.machine.isAlive && !this.machine.isFrozen
  }

  /** Whether the other servers can reach it. */
  get isReachable(): boolean {
    return this.isUp && !this.isIsolated
  }

  /** The number of the route to another server, by which late messages of a broken route are recognised; `undefined` if it is broken. */
  routeTo(other: Server): number | undefined {
    return this.#routes.has(other) ? this.#routes.get(other) : 0
  }

  /** Breaks the route to another server: interest and messages on their way are lost. */
  part(other: Server): void {
    for (const [one, two] of [[this, other], [other, this]] as const) {
      one.#routes.set(two, undefined)
      one.#remote.delete(two)
    }
  }

  /** Restores the route to another server. */
  meet(other: Server): void {
    this.#meetings++
    for (const [one, two] of [[this, other], [other, this]] as const) one.#routes.set(two, this.#meetings)
    for (const [one, two] of [[this, other], [other, this]] as const) {
      one.#tellInterest(two)
      this.cluster.jetStream.tell(two)
    }
  }

  #tellInterest(other: Server): void {
    this.cluster.inOrder(this, other, () => {
      for (const { subject } of this.#subscriptions) other.#interestOf(this).add(subject)
    })
  }

  /** Kills the server. Everything in its memory is lost. */
  kill(): void {
    this.machine.kill()
    this.cluster.network.breakAll(this.machine)
    this.#clients = new Set()
    this.#subscriptions = new Set()
    this.#remote = new Map()
  }

  /** Starts again, with the same port. */
  restart(): void {
    this.machine = new Machine(this.name)
    this.#listen()
    for (const other of this.cluster.others(this)) other.#tellInterest(this)
    this.cluster.jetStream.tell(this)
  }

  #listen(): void {
    const { machine } = this
    this.cluster.network.listen(this.port, { machine, accept: (connection) => this.#accept(connection) })
    machine.onDeath.push(() => {
      for (const other of this.cluster.others(this)) this.cluster.inOrder(this, other, () => other.#remote.delete(this))
    })
  }

  #interestOf(other: Server): Interest {
    let interest = this.#remote.get(other)
    if (interest === undefined) this.#remote.set(other, interest = new Interest())
    return interest
  }

  #accept(connection: Connection): void {
    const client: Client = { connection, subscriptions: new Map() }
    this.#clients.add(client)
    const reader = new Reader()
    connection.onData = (bytes) => {
      for (const operation of reader.read(bytes)) {
        switch (operation.type) {
          case "ping":
            connection.send(pong)
            break
          case "subscribe":
            this.#subscribe(client, operation.subject, operation.sid)
            break
          case "unsubscribe":
            this.#unsubscribe(client, operation.sid, operation.most)
            break
          case "publish":
            this.#publish(client, operation.message)
            break
          case "connect":
          case "pong":
        }
      }
    }
    connection.onClose = () => {
      this.#clients.delete(client)
      for (const subscription of client.subscriptions.values()) this.#drop(subscription)
    }
    connection.send(info(this.name, this.cluster.version))
  }

  #subscribe(client: Client, subject: string, sid: string): void {
    const subscription = { client, sid, subject, tokens: subject.split("."), left: Number.POSITIVE_INFINITY }
    client.subscriptions.set(sid, subscription)
    this.#subscriptions.add(subscription)
    for (const other of this.cluster.others(this)) {
      this.cluster.inOrder(this, other, () => other.#interestOf(this).add(subject))
    }
  }

  #unsubscribe(client: Client, sid: string, most: number | undefined): void {
    const subscription = client.subscriptions.get(sid)
    if (subscription === undefined) return
    if (most === undefined || most === 0) this.#drop(subscription)
    else subscription.left = most
  }

  #drop(subscription: Subscription): void {
    subscription.client.subscriptions.delete(subscription.sid)
    if (!this.#subscriptions.delete(subscription)) return
    for (const other of this.cluster.others(this)) {
      this.cluster.inOrder(this, other, () => other.#interestOf(this).remove(subscription.subject))
    }
  }

  #publish(client: Client, message: Message): void {
    this.cluster.published++
    if (message.subject.startsWith("usage.")) this.cluster.pages++
    const isKept = this.cluster.jetStream.accept(this, message)
    const isHeard = this.send(message.subject, message)
    if (isKept || isHeard || message.reply === "") return
    const tokens = message.reply.split(".")
    for (const subscription of client.subscriptions.values()) {
      if (matches(subscription.tokens, tokens)) {
        return client.connection.send(deliver(subscription.sid, status(message.reply, 503, "")))
      }
    }
  }

  /** Whether this server knows of a listener. */
  knowsListener(to: string): boolean {
    const tokens = to.split(".")
    for (const subscription of this.#subscriptions) if (matches(subscription.tokens, tokens)) return true
    for (const interest of this.#remote.values()) if (interest.has(tokens)) return true
    return false
  }

  /** Sends a message to all listeners that this server knows of. Returns whether there is one. */
  send(to: string, message: Message): boolean {
    const tokens = to.split(".")
    let isHeard = this.#deliver(tokens, message)
    for (const [other, interest] of this.#remote) {
      if (!interest.has(tokens)) continue
      isHeard = true
      this.cluster.inOrder(this, other, () => other.#deliver(tokens, message))
    }
    return isHeard
  }

  #deliver(to: ReadonlyArray<string>, message: Message): boolean {
    let isHeard = false
    for (const subscription of this.#subscriptions) {
      if (!matches(subscription.tokens, to)) continue
      isHeard = true
      subscription.client.connection.send(deliver(subscription.sid, message))
      if (--subscription.left <= 0) this.#drop(subscription)
    }
    return isHeard
  }
}
