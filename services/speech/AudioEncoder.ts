/**
 * Encodes 24 kHz mono sound while it is produced. The first bytes leave before the sound ends, except for WAV and FLAC: they begin
 * with the length, so they are kept in memory until the sound ends, at most 30 MB.
 *
 * The encoders of MP3, AAC and FLAC start a worker thread per sound. Opus needs none: it takes a hundredth of the sound's
 * duration.
 */
import { Encoder } from "@evan/opus"
import { registerAacEncoder } from "@mediabunny/aac-encoder"
import { registerFlacEncoder } from "@mediabunny/flac-encoder"
import { registerMp3Encoder } from "@mediabunny/mp3-encoder"
import { Effect, Queue, Stream } from "effect"
import * as Media from "mediabunny"
import type { AudioFormat } from "../../shared/contract/operations/audio/Speech.ts"
import { toLittleEndian } from "./Samples.ts"

/** The sample rate of all input, in Hz. */
export const sampleRate = 24_000

/** 20 ms of sound: the content of an Opus packet. */
const packetSamples = 480

/** Maximum bytes of a kept file to send at a time. */
const pieceBytes = 65_536

class OpusEncoder extends Media.CustomAudioEncoder {
  static override supports(codec: Media.AudioCodec): boolean {
    return codec === "opus"
  }

  readonly #encoder = new Encoder({ channels: 1, sample_rate: sampleRate, application: "voip" })
  /**
   * Number of samples that come out before the first input sample: OPUS_GET_LOOKAHEAD. The package's accessor is misspelt in
   * its types.
   */
  readonly #preSkip = this.#encoder.ctl(4_027)
  #pending = new Int16Array(0)
  #added = 0
  #packets = 0

  init(): void {
    this.#encoder.bitrate = 32_000
  }

  encode(sample: Media.AudioSample): void {
    const samples = new Int16Array(sample.numberOfFrames)
    sample.copyTo(samples, { planeIndex: 0, format: "s16" })
    this.#added += samples.length
    this.#emit(samples)
  }

  /** Pads the last packet and shortens its duration, so that the packets last as long as the sound and its pre-skip. */
  flush(): void {
    const total = this.#added + this.#preSkip
    this.#emit(new Int16Array(Math.ceil(total / packetSamples) * packetSamples - this.#added), total)
  }

  close(): void {}

  #emit(samples: Int16Array, end = Number.POSITIVE_INFINITY): void {
    const input = new Int16Array(this.#pending.length + samples.length)
    input.set(this.#pending)
    input.set(samples, this.#pending.length)
    let at = 0
    for (; at + packetSamples <= input.length; at += packetSamples) {
      const start = this.#packets++ * packetSamples
      const duration = Math.min(packetSamples, end - start) / sampleRate
      const data = this.#encoder.encode(input.slice(at, at + packetSamples))
      this.onPacket(new Media.EncodedPacket(data, "key", start / sampleRate, duration), this.#metadata())
    }
    this.#pending = input.slice(at)
  }

  /** The header by RFC 7845, section 5.1. Opus counts time at 48 kHz, whatever the rate of its input. */
  #metadata() {
    const description = Buffer.alloc(19)
    description.write("OpusHead\x01\x01", "latin1")
    description.writeUInt16LE(this.#preSkip * 48_000 / sampleRate, 10)
    description.writeUInt32LE(sampleRate, 12)
    return { decoderConfig: { codec: "opus", numberOfChannels: 1, sampleRate: 48_000, description } }
  }
}

registerMp3Encoder()
registerAacEncoder()
registerFlacEncoder()
Media.registerEncoder(OpusEncoder)

/** File formats. The headers of WAV and FLAC state the length; the others have no fields to fill in at the end. */
const files: Readonly<Record<Exclude<AudioFormat, "pcm">, () => Media.OutputFormat>> = {
  mp3: () => new Media.Mp3OutputFormat({ xingHeader: false }),
  aac: () => new Media.AdtsOutputFormat(),
  flac: () => new Media.FlacOutputFormat(),
  wav: () => new Media.WavOutputFormat(),
  opus: () => new Media.OggOutputFormat({ maximumPageDuration: 0.5 })
}

/**
 * Encodes a sound that has at least one sample: the first ones start the encoder. Its slices should be short: each is encoded
 * without a pause.
 */
export const encode = <E, R>(
  codec: AudioFormat,
  sound: Stream.Stream<Int16Array, E, R>
): Stream.Stream<Uint8Array, E, R> =>
  codec === "pcm" ? Stream.map(sound, toLittleEndian) : Stream.callback<Uint8Array, E, R>(
    Effect.fnUntraced(function*(queue) {
      const run = Effect.runPromiseWith(yield* Effect.context())
      // a full queue stops the encoder and so the sound, until the client reads on
      const write = async (chunk: Uint8Array) => {
        await run(Queue.offer(queue, chunk))
      }
      const whole = codec === "wav" || codec === "flac" ? new Media.BufferTarget() : undefined
      const target = whole ?? new Media.AppendOnlyStreamTarget(new WritableStream({ write }))
      const output = new Media.Output({ format: files[codec](), target })
      const bitrate = whole === undefined ? { bitrate: codec === "opus" ? 32_000 : 64_000 } : {}
      const source = new Media.AudioSampleSource({ codec: codec === "wav" ? "pcm-s16" : codec, ...bitrate })
      output.addAudioTrack(source)
      // without a reader, an encoder would wait for its last write forever
      const cancel = Effect.andThen(Queue.shutdown(queue), Effect.promise(() => output.cancel()))
      yield* Effect.addFinalizer(() => output.state === "started" ? cancel : Effect.void)
      let added = 0
      yield* Stream.runForEach(sound, (data) =>
        Effect.promise(async () => {
          if (output.state === "pending") await output.start()
          const timestamp = added / sampleRate
          added += data.length
          const sample = new Media.AudioSample({ data, format: "s16", numberOfChannels: 1, sampleRate, timestamp })
          await source.add(sample)
          sample.close()
        }))
      yield* Effect.promise(() => output.finalize())
      const bytes = new Uint8Array(whole?.buffer ?? new ArrayBuffer())
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        yield* Queue.offer(queue, bytes.subarray(at, at + pieceBytes))
      }
      yield* Queue.end(queue)
    }),
    { bufferSize: 16, strategy: "suspend" }
  )
