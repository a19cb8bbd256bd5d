/** Reads the properties of a video file with a demuxer, because what a provider declares may be wrong. */
import { Effect } from "effect"
import { BufferSource, Input, type InputFormat, MP4, QTFF, WEBM } from "mediabunny"
import { ProviderFailed } from "../../contract/JobError.ts"
import type { VideoFormat } from "../../contract/operations/VideoGenerations.ts"
import type { GuardedFetch } from "../transport/GuardedFetch.ts"
import * as ProviderResult from "../transport/ProviderResult.ts"
import type { Video, VideoCall } from "./VideoEngine.ts"

/** The limits of fetching a video: generous, because no client waits on a socket. The retries bridge two minutes of an outage. */
export const bounds = { maximumBytes: 128 * 1024 * 1024, withinMs: 5 * 60_000, tries: 8 }

const formats: ReadonlyMap<InputFormat, VideoFormat> = new Map<InputFormat, VideoFormat>([
  [MP4, "mp4"],
  [WEBM, "webm"],
  [QTFF, "mov"]
])

const inspect = async (bytes: Uint8Array) => {
  using input = new Input({ source: new BufferSource(bytes), formats: [...formats.keys()] })
  const format = formats.get(await input.getFormat())
  const track = await input.getPrimaryVideoTrack()
  if (track === null || format === undefined) throw new Error("the file has no video track")
  const { averagePacketRate } = await track.computePacketStats()
  return {
    format,
    facts: {
      duration: thousandths(await input.computeDuration()),
      fps: thousandths(averagePacketRate),
      width: await track.getDisplayWidth(),
      height: await track.getDisplayHeight()
    }
  }
}

const thousandths = (value: number): number => Math.round(value * 1_000) / 1_000

/** Reads a provider's video. Fails if the file has no video track. `warnings` are the paths of lost fields. */
export const read = (
  { endpoint, request: { seed = null } }: VideoCall,
  bytes: Uint8Array,
  warnings: ReadonlyArray<string>
): Effect.Effect<Video, ProviderFailed> =>
  Effect.tryPromise(() => inspect(bytes)).pipe(
    Effect.map(({ facts, format }): Video => ({
      bytes,
      format,
      // a negative seed asks the provider to choose one, which only the provider knows; records have JavaScript's numbers
      metadata: {
        ...facts,
        seed: Number.isSafeInteger(seed) && Number(seed) >= 0 ? Number(seed) : null,
        ...(warnings.length === 0 ? {} : { warnings })
      }
    })),
    Effect.tapError(({ cause }) =>
      Effect.logWarning("cannot read a provider's video", { provider: endpoint.name, cause: String(cause) })
    ),
    Effect.mapError(() => ProviderFailed.malformed(endpoint.name))
  )

/** Fetches a provider's video from its URL, and reads it. */
export const fetch = Effect.fnUntraced(function*(
  guard: GuardedFetch["Service"],
  call: VideoCall,
  address: string | null | undefined,
  warnings: ReadonlyArray<string>
) {
  const url = URL.parse(address ?? "")
  if (url === null) return yield* ProviderFailed.malformed(call.endpoint.name)
  return yield* read(call, yield* ProviderResult.fetch(guard, call.endpoint, url, bounds), warnings)
})
