/** What a video file holds, as a demuxer finds it: what a provider says of its file is not relied on. */
import { Effect } from "effect"
import { BufferSource, Input, MP4 } from "mediabunny"
import { ProviderFailed } from "../../contract/JobError.ts"
import type { VideoMetadata } from "../../contract/operations/VideoGenerations.ts"
import type { Endpoint } from "../transport/Endpoint.ts"
import type { Video } from "./VideoEngine.ts"

/** A provider's video may be large, and come slowly, and nobody waits for it on a socket: two minutes of an outage. */
export const bounds = { maximumBytes: 128 * 1024 * 1024, withinMs: 5 * 60_000, tries: 8 }

interface Told {
  /** `null` where the provider does not tell. */
  readonly seed: number | null
  /** What of the request could not be carried over, by its path. */
  readonly warnings: ReadonlyArray<string>
}

const inspect = async (bytes: Uint8Array): Promise<Omit<VideoMetadata, "seed" | "warnings">> => {
  using input = new Input({ source: new BufferSource(bytes), formats: [MP4] })
  const track = await input.getPrimaryVideoTrack()
  if (track === null) throw new Error("there is no video in it")
  const { averagePacketRate } = await track.computePacketStats()
  return {
    duration: thousandths(await input.computeDuration()),
    fps: thousandths(averagePacketRate),
    width: await track.getDisplayWidth(),
    height: await track.getDisplayHeight()
  }
}

const thousandths = (value: number): number => Math.round(value * 1_000) / 1_000

/** The video that a provider has made. Fails where the file is no MP4 with a video in it. */
export const read = (
  endpoint: Endpoint,
  bytes: Uint8Array,
  { seed, warnings }: Told
): Effect.Effect<Video, ProviderFailed> =>
  Effect.tryPromise(() => inspect(bytes)).pipe(
    Effect.map((facts): Video => ({
      bytes,
      format: "mp4",
      metadata: { ...facts, seed, ...(warnings.length === 0 ? {} : { warnings }) }
    })),
    Effect.tapError(({ cause }) =>
      Effect.logWarning("a provider's video cannot be read", { provider: endpoint.name, cause: String(cause) })
    ),
    Effect.mapError(() => ProviderFailed.malformed(endpoint.name))
  )
