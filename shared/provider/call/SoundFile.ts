/** Turns the sound of a request into a file that providers recognise by its name and type. */
import { Effect } from "effect"
import { bytesIn, isFile } from "./Base64File.ts"
import { InvalidRequest } from "../../contract/JobError.ts"

/** The kinds of sound by the first bytes of the file, in latin1. */
const kinds: ReadonlyArray<readonly [start: RegExp, extension: string, mediaType: string]> = [
  [/^RIFF.{4}WAVE/s, "wav", "audio/wav"],
  [/^(?:ID3|\xff[\xe2-\xe7\xea-\xef\xf2-\xf7\xfa-\xff])/, "mp3", "audio/mpeg"],
  [/^OggS/, "ogg", "audio/ogg"],
  [/^fLaC/, "flac", "audio/flac"],
  [/^.{4}ftyp/s, "m4a", "audio/mp4"],
  [/^.E\xdf\xa3/s, "webm", "audio/webm"]
]

const wrong = (what: string) => Effect.fail(InvalidRequest.at("file", what, "invalid_audio"))

/** The file for a form's file, a data URL or base64. Its first bytes determine the type: clients often declare none, or a wrong one. */
export const fileOf = Effect.fnUntraced(function*(sound: string | File): Effect.fn.Return<File, InvalidRequest> {
  if (typeof sound === "string" && !isFile(sound)) return yield* wrong("must be a file, a data URL or base64")
  const bytes = typeof sound === "string"
    ? bytesIn(sound)
    : Buffer.from(yield* Effect.promise(() => sound.arrayBuffer()))
  if (bytes.length === 0) return yield* wrong("must not be empty")
  const start = bytes.toString("latin1", 0, 12)
  const [, extension, type] = kinds.find(([begins]) => begins.test(start)) ?? []
  if (type !== undefined) return new File([bytes], `audio.${extension}`, { type })
  return typeof sound === "string" ? new File([bytes], "audio") : sound
})
