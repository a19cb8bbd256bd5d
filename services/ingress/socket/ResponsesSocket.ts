/**
 * Serves one WebSocket for responses. Each message belongs to a lane: lanes run concurrently, and a lane answers one message after
 * the other. A message is served like an HTTP request: key, limits and budget are checked again, and a client that disconnects
 * cancels its jobs.
 */
import { Option, Result, Schema } from "effect"
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import type { RawData, WebSocket } from "ws"
import { QueueFull, Unavailable } from "../../../shared/contract/JobError.ts"
import { firstEvents, lastEvents } from "../../../shared/contract/http/ResponseEvents.ts"
import { newResponseId } from "../../../shared/contract/ResponseId.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import { type RequestError, SocketExpired, TooManyLanes } from "../errors/IngressError.ts"
import type { Incoming, Outgoing } from "../exchange/Exchange.ts"
import type { BodyMemory } from "../body/BodyMemory.ts"
import type { UploadBudget } from "../body/UploadBudget.ts"
import { type Creation, decode } from "./ClientMessage.ts"
import { MessageRequest, MessageResponse, type Refusal } from "./MessageExchange.ts"
import { RecentResponses, type WholeBody } from "./RecentResponses.ts"

/** OpenAI's limits: running answers and lanes of a socket, and its maximum age in milliseconds. */
const maxRunning = 16
const maxLanes = 32
const lifetimeMs = 60 * 60 * 1_000

/** Maximum number of messages that wait for their lane or for other answers to end. */
const maxWaiting = 256

/** The interval between pings in milliseconds. A client that has not answered the last ping is gone. */
const pingMs = 30_000

/** Bytes of an incomplete message that take no memory: if memory is short, a small message gets an error and the socket stays open. */
const uncountedBytes = 64 * 1024

/** Maximum unread characters of errors and of answers to preloads. Answers of models wait for their client instead. */
const maxUnread = 1_000_000

/** How long a client has to close a socket that was closed because of it, in milliseconds. */
const lingerMs = 1_000

/** Close codes of RFC 6455 and its registry. OpenAI's client never reconnects after 1000. */
const close = { goingAway: 1001, tryAgainLater: 1013 }

/** All events that have the response so far. */
const withResponse = new Set([...firstEvents, ...lastEvents, "response.failed"])

const Fields = Schema.Record(Schema.String, Schema.Unknown)
const decodeEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.StructWithRest(Schema.Struct({ response: Fields }), [Fields]))
)

interface Lane {
  readonly name: string | undefined
  readonly waiting: Array<Creation>
  /** The answer that it is sending. */
  running: MessageResponse | undefined
}

export interface SocketOptions {
  readonly socket: WebSocket
  /** The connection below it, with the request that opened it. */
  readonly connection: Duplex
  readonly request: IncomingMessage
  readonly path: string
  readonly tenant: string
  readonly memory: BodyMemory["Service"]
  /** The time in epoch milliseconds. */
  readonly now: () => number
  /** Serves a request of an operation. */
  readonly take: (request: Incoming, response: Outgoing) => boolean
}

export class ResponsesSocket {
  readonly #options: SocketOptions
  readonly #recent: RecentResponses
  readonly #upload: UploadBudget
  readonly #lanes = new Map<string, Lane>()
  /** The lanes whose next message may start when another answer has ended, in turn. */
  readonly #due: Array<Lane> = []
  readonly #ping: NodeJS.Timeout
  readonly #expiry: NodeJS.Timeout
  #running = 0
  #waiting = 0
  /** The bytes of a message that is not complete yet. */
  #uploaded = 0
  /** The characters of the socket's own events that have not been sent yet. */
  #unread = 0
  #isAlive = true
  #isDraining = false
  #isClosed = false

  constructor(options: SocketOptions) {
    const { connection, memory, socket, tenant } = options
    this.#options = options
    this.#recent = new RecentResponses(memory.bodies, tenant)
    this.#upload = memory.upload(tenant)
    this.#ping = setInterval(() => this.#checkAlive(), pingMs)
    this.#expiry = setTimeout(() => this.#expire(), lifetimeMs)
    // the library holds a message until its last byte
    connection.on("data", (piece: Uint8Array) => this.#count(piece.length))
    socket.on("message", (data, isBinary) => this.#receive(data, isBinary))
    socket.on("pong", () => {
      this.#isAlive = true
    })
    socket.on("close", () => this.#close())
    // the socket closes after an error
    socket.on("error", () => {})
  }

  /** Closes the socket when its answers have ended. Starts no further ones. */
  drain(): void {
    this.#isDraining = true
    for (const { name, waiting } of this.#lanes.values()) {
      for (const { bytes } of waiting.splice(0)) {
        this.#release(bytes)
        this.#refuse(name, Unavailable.briefly())
      }
    }
    this.#closeIfIdle()
  }

  #count(bytes: number): void {
    this.#uploaded += bytes
    if (this.#uploaded <= uncountedBytes || this.#upload.reserve(this.#uploaded)) return
    const { socket } = this.#options
    socket.close(close.tryAgainLater, "no memory for the message")
    // the library would collect the message until the client closes
    socket.pause()
    setTimeout(() => socket.terminate(), lingerMs)
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#uploaded = 0
    this.#upload.release()
    const message = decode(data as Buffer, isBinary)
    if (Result.isFailure(message)) return this.#refuse(message.failure.lane, message.failure.error)
    const creation = message.success
    if (creation === undefined) return
    const error = this.#accept(creation)
    if (error !== undefined) this.#refuse(creation.lane, error)
  }

  /** Puts a message into its lane, unless there is an error. */
  #accept(creation: Creation): RequestError | undefined {
    const { memory: { bodies }, tenant } = this.#options
    const name = creation.lane ?? ""
    if (this.#isDraining) return Unavailable.briefly()
    if (!this.#lanes.has(name) && this.#lanes.size >= maxLanes) return new TooManyLanes({ max: maxLanes })
    if (this.#waiting >= maxWaiting || !bodies.reserve(tenant, creation.bytes)) {
      return new QueueFull({ retryAfterMs: 1_000 })
    }
    this.#waiting++
    const lane = this.#lanes.get(name) ?? { name: creation.lane, waiting: [], running: undefined }
    this.#lanes.set(name, lane)
    lane.waiting.push(creation)
    if (lane.running === undefined && lane.waiting.length === 1) this.#due.push(lane)
    this.#startNext()
    return undefined
  }

  #startNext(): void {
    while (this.#running < maxRunning) {
      const lane = this.#due.shift()
      const creation = lane?.waiting.shift()
      if (lane === undefined || creation === undefined) return
      this.#release(creation.bytes)
      this.#start(lane, creation)
    }
  }

  /** Ends the wait of a message, and releases its memory. */
  #release(bytes: number): void {
    this.#waiting--
    this.#options.memory.bodies.release(this.#options.tenant, bytes)
  }

  #start(lane: Lane, { body, generates }: Creation): void {
    const { json, whole } = this.#recent.expand(generates ? { ...body, stream: true } : body)
    if (!generates) return this.#preload(lane, body, whole)
    this.#recent.hold(whole)
    const { path, request, take } = this.#options
    const response = new MessageResponse({
      onEvent: (name, data, sent) => this.#relay(lane, whole, name, data, sent),
      onRefusal: (refusal) => this.#fail(lane, whole, refusal)
    })
    lane.running = response
    this.#running++
    response.on("close", () => {
      this.#running--
      this.#recent.release(whole)
      this.#next(lane)
    })
    if (!take(new MessageRequest(request, path, json), response)) response.destroy()
  }

  #next(lane: Lane): void {
    lane.running = undefined
    if (this.#isClosed) return
    if (lane.waiting.length > 0) this.#due.push(lane)
    this.#startNext()
    this.#closeIfIdle()
  }

  /** Answers immediately: the input is kept, and no model is called. */
  #preload(lane: Lane, { model = null }: Creation["body"], whole: WholeBody): void {
    const previous_response_id = whole.named ?? null
    const id = newResponseId()
    this.#recent.keep(lane.name ?? "", id, whole, [])
    const created_at = Math.floor(this.#options.now() / 1_000)
    const response = {
      ...{ id, object: "response", created_at, status: "in_progress", model },
      ...{ previous_response_id, output: [], usage: null }
    }
    const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
    this.#send(lane.name, { type: "response.created", sequence_number: 0, response })
    this.#send(lane.name, {
      type: "response.completed",
      sequence_number: 1,
      response: { ...response, status: "completed", usage }
    })
    this.#next(lane)
  }

  #relay(lane: Lane, whole: WholeBody, name: string, data: string, sent: () => void): void {
    if (name === "response.failed") this.#forget(whole)
    const isLast = lastEvents.has(name)
    const isRead = isLast || (whole.continues !== undefined && withResponse.has(name))
    const event = isRead ? Option.getOrUndefined(decodeEvent(data)) : undefined
    const { id, output } = event?.response ?? {}
    if (isLast && typeof id === "string" && Array.isArray(output)) this.#recent.keep(lane.name ?? "", id, whole, output)
    // the operation does not know the response that this one continues
    const text = event === undefined || whole.continues === undefined
      ? data
      : JSON.stringify({ ...event, response: { ...event.response, previous_response_id: whole.named } })
    // the event is an object with members
    const named = lane.name === undefined
      ? text
      : `{"stream_id":${JSON.stringify(lane.name)},${text.trimStart().slice(1)}`
    this.#options.socket.send(named, sent)
  }

  #fail({ name }: Lane, whole: WholeBody, refusal: Refusal): void {
    this.#forget(whole)
    if (!this.#isClosed) this.#send(name, { type: "error", ...refusal })
  }

  /** Forgets the response that a failed request continued from: its client sends the whole input next. */
  #forget({ continues }: WholeBody): void {
    if (continues !== undefined) this.#recent.forget(continues)
  }

  #refuse(lane: string | undefined, error: RequestError): void {
    const { status } = ErrorEnvelope.toText("responses", error, "")
    this.#send(lane, { type: "error", status, error: ErrorEnvelope.toFields(error) })
  }

  /** Sends an event that does not wait until the client has read the earlier ones. */
  #send(lane: string | undefined, event: object): void {
    const { socket } = this.#options
    if (this.#unread > maxUnread) return socket.terminate()
    const text = JSON.stringify(lane === undefined ? event : { stream_id: lane, ...event })
    this.#unread += text.length
    socket.send(text, () => {
      this.#unread -= text.length
    })
  }

  #checkAlive(): void {
    if (!this.#isAlive) return this.#options.socket.terminate()
    this.#isAlive = false
    this.#options.socket.ping()
  }

  #expire(): void {
    this.#refuse(undefined, new SocketExpired({ minutes: lifetimeMs / 60_000 }))
    this.drain()
  }

  #closeIfIdle(): void {
    if (this.#isDraining && this.#running === 0 && this.#waiting === 0) this.#options.socket.close(close.goingAway)
  }

  #close(): void {
    this.#isClosed = true
    clearInterval(this.#ping)
    clearTimeout(this.#expiry)
    this.#upload.release()
    this.#recent.clear()
    for (const { running, waiting } of this.#lanes.values()) {
      for (const { bytes } of waiting.splice(0)) this.#release(bytes)
      running?.destroy()
    }
  }
}
