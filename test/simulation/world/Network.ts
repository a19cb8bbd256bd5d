/**
 * Connections between machines and NATS's servers: ordered in each direction, each with its own delays. A link may be cut,
 * held or slow.
 */
import { EventEmitter } from "node:events"
import type { Machine, World } from "./World.ts"

/** Accepts the connections of a server. */
export interface Acceptor {
  readonly machine: Machine
  readonly accept: (connection: Connection) => void
}

type OnArrival = () => void

/** One direction of a connection. Bytes written before a delivery arrive with it. */
class Direction {
  readonly #world: World
  readonly #to: Machine
  readonly #link: Link
  readonly #deliver: (bytes: Buffer) => void
  #waiting: Array<Buffer> = []
  #onArrival: Array<OnArrival> = []
  #isDue = false
  #isCut = false

  constructor(world: World, to: Machine, link: Link, deliver: (bytes: Buffer) => void) {
    this.#world = world
    this.#to = to
    this.#link = link
    this.#deliver = deliver
  }

  send(bytes: Uint8Array, onArrival?: OnArrival): void {
    if (this.#isCut || bytes.length === 0) return
    // the client reuses its buffer
    this.#waiting.push(Buffer.from(bytes))
    if (onArrival !== undefined) this.#onArrival.push(onArrival)
    this.#schedule()
  }

  /** Calls `run` when everything that was sent has arrived. */
  afterwards(run: () => void): void {
    this.#world.after(this.#link.delayMs(this.#world), this.#to, () => {
      if (this.#isCut || !this.#isDue) run()
      else this.afterwards(run)
    })
  }

  cut(): void {
    this.#isCut = true
    this.#waiting = []
  }

  #schedule(): void {
    if (this.#isDue) return
    this.#isDue = true
    this.#world.after(this.#link.delayMs(this.#world), this.#to, () => {
      this.#isDue = false
      if (this.#isCut || this.#waiting.length === 0) return
      if (this.#link.isHeld) return void this.#link.onRelease.push(() => this.#schedule())
      const bytes = Buffer.concat(this.#waiting)
      this.#waiting = []
      for (const onArrival of this.#onArrival.splice(0)) onArrival()
      this.#deliver(bytes)
    })
  }
}

/** The link between a machine and a server. */
export class Link {
  /** Whether nothing arrives, in either direction. */
  isHeld = false
  onRelease: Array<() => void> = []
  /** Added to every delay, in milliseconds. */
  slowMs = 0

  delayMs(world: World): number {
    const { random } = world
    return this.slowMs + (random.chance(0.02) ? random.between(1, 20) : random.between(0.05, 0.4))
  }

  release(): void {
    this.isHeld = false
    for (const resume of this.onRelease.splice(0)) resume()
  }
}

/** The client's end of a connection, in the form of Node's socket. */
class ClientSocket extends EventEmitter {
  destroyed = false
  readonly #send: (bytes: Uint8Array) => void
  readonly #close: () => void

  constructor(send: (bytes: Uint8Array) => void, close: () => void) {
    super()
    this.#send = send
    this.#close = close
  }

  setNoDelay(): this {
    return this
  }

  write(bytes: Uint8Array, done?: (error?: Error) => void): boolean {
    if (!this.destroyed) this.#send(bytes)
    if (done !== undefined) queueMicrotask(done)
    return true
  }

  end(): this {
    return this.destroy()
  }

  destroy(): this {
    if (this.destroyed) return this
    this.destroyed = true
    this.#close()
    return this
  }
}

/** The server's end of a connection. */
export interface Connection {
  readonly client: string
  /** Calls `onArrival` when the client has the bytes, unless the connection breaks before. */
  readonly send: (bytes: Uint8Array, onArrival?: OnArrival) => void
  onData: (bytes: Buffer) => void
  /** Called when the connection closes; `byClient` if the client has closed it. */
  onClose: (byClient: boolean) => void
  readonly close: () => void
  /** Closes it once everything that was sent has arrived. */
  readonly end: () => void
}

interface Open {
  readonly machine: Machine
  readonly server: Machine
  readonly breakOff: () => void
}

/** Errors like Node's. */
const refused = () => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" })
const reset = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })

export class Network {
  readonly #world: World
  readonly #listeners = new Map<number, Acceptor>()
  readonly #links = new Map<string, Link>()
  readonly #open = new Set<Open>()

  constructor(world: World) {
    this.#world = world
  }

  listen(port: number, acceptor: Acceptor): void {
    this.#listeners.set(port, acceptor)
  }

  link(machine: Machine, server: Machine): Link {
    const name = `${machine.name} ${server.name}`
    let link = this.#links.get(name)
    if (link === undefined) this.#links.set(name, link = new Link())
    return link
  }

  /** Ends all connections of a machine or server: their peers notice at once, unless the link is held. */
  breakAll(machine: Machine): void {
    for (const open of this.#open) if (open.machine === machine || open.server === machine) open.breakOff()
  }

  connect(machine: Machine, port: number, onConnect: () => void): ClientSocket {
    const world = this.#world
    const acceptor = this.#listeners.get(port)
    if (acceptor === undefined) throw new Error(`no server has port ${port}`)
    const server = acceptor.machine
    const link = this.link(machine, server)
    let isOpen = false
    let connection: Connection | undefined
    const close = (byClient: boolean) => {
      if (!isOpen) return
      isOpen = false
      this.#open.delete(open)
      toServer.cut()
      toClient.cut()
      const { onClose } = connection ?? {}
      world.after(link.delayMs(world), server, () => onClose?.(byClient))
      if (!byClient) world.after(link.delayMs(world), machine, () => finish(reset()))
    }
    const finish = (error?: Error) => {
      if (socket.destroyed) return
      socket.destroyed = true
      if (error !== undefined) socket.emit("error", error)
      socket.emit("close")
    }
    const write = (bytes: Uint8Array) => {
      machine.onWrite?.(bytes)
      toServer.send(bytes)
    }
    const socket: ClientSocket = new ClientSocket(write, () => close(true))
    // a client may write before the server has accepted
    let early: Array<Buffer> | undefined = []
    const toServer = new Direction(world, server, link, (bytes) => {
      if (early === undefined) connection?.onData(bytes)
      else early.push(bytes)
    })
    const toClient = new Direction(world, machine, link, (bytes) => void socket.emit("data", bytes))
    const open: Open = { machine, server, breakOff: () => close(false) }
    const fail = () => world.after(link.delayMs(world), machine, () => finish(refused()))
    // a frozen server's kernel accepts the connection
    world.after(link.delayMs(world), undefined, () => {
      if (socket.destroyed) return
      if (!server.isAlive || !machine.isAlive) return void fail()
      isOpen = true
      this.#open.add(open)
      connection = {
        client: machine.name,
        send: (bytes, onArrival) => toClient.send(bytes, onArrival),
        onData: () => undefined,
        onClose: () => undefined,
        close: () => close(false),
        end: () =>
          toClient.afterwards(() => {
            if (!socket.destroyed) socket.emit("end")
            close(true)
            finish()
          })
      }
      const accepted = connection
      world.after(0, machine, () => onConnect())
      world.after(link.delayMs(world), server, () => {
        if (!isOpen) return
        acceptor.accept(accepted)
        const before = early ?? []
        early = undefined
        for (const bytes of before) accepted.onData(bytes)
      })
    })
    return socket
  }
}
