/**
 * Turns 24 kHz mono sound into the bytes of each audio format as it comes: what is heard first is sent first, and no format
 * needs its end to be known at its beginning.
 *
 * MP3, AAC and FLAC are encoded in worker threads, which the encoders start themselves, one for each sound that is being
 * made; Opus takes a hundredth of the sound's duration.
 */
import { Encoder as OpusEncoder } from "@evan/opus"
import { registerAacEncoder } from "@mediabunny/aac-encoder"
import { registerFlacEncoder } from "@mediabunny/flac-encoder"
import { registerMp3Encoder } from "@mediabunny/mp3-encoder"
import { Effect, Queue, Stream } from "effect"
import {
  AdtsOutputFormat,
  AppendOnlyStreamTarget,
  AudioSample,
  AudioSampleSource,
  EncodedAudioPacketSource,
  EncodedPacket,
  FlacOutputFormat,
  type MediaSource,
  Mp3OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat
} from "mediabunny"
import type { AudioFormat } from "../../shared/contract/operations/AudioSpeech.ts"
import { toLittleEndian } from "./Samples.ts"

/** Of everything that is encoded, in Hz. Opus counts in 48 kHz by itself. */
export const sampleRate = 24_000

registerMp3Encoder()
registerAacEncoder()
registerFlacEncoder()

/** Encodes a sound that has at least one sample. Its slices should be short, for each is encoded in one go. */
export const encode = <E, R>(
  format: AudioFormat,
  sound: Stream.Stream<Int16Array, E, R>
): Stream.Stream<Uint8Array, E, R> => {
  switch (format) {
    case "pcm":
      return Stream.map(sound, toLittleEndian)
    case "wav":
      return Stream.mapAccum(sound, () => false, (begun, samples) => [
        true,
        begun ? [toLittleEndian(samples)] : [wavHeader(), toLittleEndian(samples)]
      ])
    case "opus":
      return multiplexed(() => new OpusTrack(), sound)
    case "mp3":
      // without the Xing header, which would have to be filled in at the end
      return multiplexed(() => new SampleTrack("mp3", new Mp3OutputFormat({ xingHeader: false })), sound)
    case "aac":
      return multiplexed(() => new SampleTrack("aac", new AdtsOutputFormat()), sound)
    case "flac":
      return multiplexed(() => new SampleTrack("flac", new FlacOutputFormat({ appendOnly: true })), sound)
  }
}

/** The sizes of a sound whose end is not known yet, by convention: players then read to the end of the file. */
const unknownSize = 0xffff_ffff

const wavHeader = (): Uint8Array => {
  const header = Buffer.alloc(44)
  header.write("RIFF", 0, "latin1")
  header.writeUInt32LE(unknownSize, 4)
  header.write("WAVEfmt ", 8, "latin1")
  header.writeUInt32LE(16, 16)
  // PCM, one channel
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(sampleRate, 24)
  header.writeUInt32LE(sampleRate * 2, 28)
  // bytes in a frame, bits in a sample
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write("data", 36, "latin1")
  header.writeUInt32LE(unknownSize, 40)
  return header
}

/** The one track of a file that is being made. */
interface Track {
  readonly format: OutputFormat
  readonly source: MediaSource & (AudioSampleSource | EncodedAudioPacketSource)
  readonly add: (samples: Int16Array) => Promise<void>
  /** Adds what is left when the sound has ended. */
  readonly finish: () => Promise<void>
}

/** Runs a sound through an encoder into a file format. The encoder is started with the first samples, not before. */
const multiplexed = <E, R>(
  makeTrack: () => Track,
  sound: Stream.Stream<Int16Array, E, R>
): Stream.Stream<Uint8Array, E, R> =>
  Stream.callback<Uint8Array, E, R>(
    Effect.fnUntraced(function*(queue) {
      const run = Effect.runPromiseWith(yield* Effect.context())
      const track = makeTrack()
      // whoever reads slowly is waited for: the encoder, and so the sound, stops at a full queue
      const target = new AppendOnlyStreamTarget(
        new WritableStream({
          write: async (chunk) => {
            await run(Queue.offer(queue, chunk))
          }
        })
      )
      const output = new Output({ format: track.format, target })
      output.addAudioTrack(track.source)
      // one that nobody reads any more waits for its last write, and that for a reader
      const cancelled = Effect.andThen(Queue.shutdown(queue), Effect.promise(() => output.cancel()))
      yield* Effect.addFinalizer(() => output.state === "started" ? cancelled : Effect.void)
      yield* Stream.runForEach(sound, (samples) =>
        Effect.promise(async () => {
          if (output.state === "pending") await output.start()
          await track.add(samples)
        }))
      yield* Effect.promise(async () => {
        await track.finish()
        await output.finalize()
      })
      yield* Queue.end(queue)
    }),
    { bufferSize: 16, strategy: "suspend" }
  )

/** What is encoded by one of the encoders that were registered above. */
class SampleTrack implements Track {
  readonly format: OutputFormat
  readonly source: AudioSampleSource
  #added = 0

  constructor(codec: "mp3" | "aac" | "flac", format: OutputFormat) {
    this.format = format
    this.source = new AudioSampleSource(codec === "flac" ? { codec } : { codec, bitrate: 64_000 })
  }

  async add(samples: Int16Array): Promise<void> {
    const timestamp = this.#added / sampleRate
    this.#added += samples.length
    const sample = new AudioSample({ data: samples, format: "s16", numberOfChannels: 1, sampleRate, timestamp })
    await this.source.add(sample)
    sample.close()
  }

  async finish(): Promise<void> {}
}

/** Opus counts time in samples of 48 kHz, whatever rate it is given. */
const opusRate = 48_000
/** 20 ms of sound: what one packet holds. */
const packetSamples = 480
/** Of the Opus library: OPUS_GET_LOOKAHEAD. */
const getLookahead = 4_027

class OpusTrack implements Track {
  readonly format = new OggOutputFormat({ maximumPageDuration: 0.5 })
  readonly source = new EncodedAudioPacketSource("opus")
  readonly #encoder = new OpusEncoder({ channels: 1, sample_rate: sampleRate, application: "voip" })
  /** Samples of 24 kHz that come out before the first that went in. The accessor's name in the package's types is misspelt. */
  readonly #preSkip = this.#encoder.ctl(getLookahead)
  #pending = new Int16Array(0)
  #added = 0
  #packets = 0

  constructor() {
    this.#encoder.bitrate = 32_000
  }

  async add(samples: Int16Array): Promise<void> {
    this.#added += samples.length
    await this.#encode(samples)
  }

  async finish(): Promise<void> {
    // the packets have to hold the sound and what comes before it; the last is cut to fit
    const total = this.#added + this.#preSkip
    const missing = Math.ceil(total / packetSamples) * packetSamples - this.#added
    await this.#encode(new Int16Array(missing), total)
  }

  async #encode(samples: Int16Array, end = Number.POSITIVE_INFINITY): Promise<void> {
    const input = new Int16Array(this.#pending.length + samples.length)
    input.set(this.#pending)
    input.set(samples, this.#pending.length)
    let at = 0
    for (; at + packetSamples <= input.length; at += packetSamples) {
      const data = this.#encoder.encode(input.slice(at, at + packetSamples))
      const start = this.#packets++ * packetSamples
      const duration = Math.min(packetSamples, end - start) / sampleRate
      await this.source.add(
        new EncodedPacket(data, "key", start / sampleRate, duration),
        start === 0 ? { decoderConfig: this.#decoderConfig() } : undefined
      )
    }
    this.#pending = input.slice(at)
  }

  #decoderConfig() {
    return { codec: "opus", numberOfChannels: 1, sampleRate: opusRate, description: this.#identification() }
  }

  /** RFC 7845, section 5.1. */
  #identification(): Uint8Array<ArrayBuffer> {
    const header = new Uint8Array(19)
    const view = new DataView(header.buffer)
    header.set(new TextEncoder().encode("OpusHead"))
    header.set([1, 1], 8)
    view.setUint16(10, this.#preSkip * (opusRate / sampleRate), true)
    view.setUint32(12, sampleRate, true)
    return header
  }
}
