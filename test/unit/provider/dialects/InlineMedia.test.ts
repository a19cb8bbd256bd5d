/** Files fetched from URLs: their actual media types, whatever the server reports, and which a provider needs. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Conversation, MediaPart } from "../../../../shared/provider/dialects/conversation/Conversation.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import * as InlineMedia from "../../../../shared/provider/dialects/conversation/InlineMedia.ts"

const png = Buffer.from("\x89PNG\r\n\x1a\n", "latin1")
const pdf = Buffer.from("%PDF-1.4")

const address = "https://files.example/a"
const image: MediaPart = { type: "image", mediaType: "", media: { type: "url", url: address } }
const file: MediaPart = { type: "file", mediaType: "", name: undefined, media: { type: "url", url: address } }

const inline = (part: MediaPart, bytes: Uint8Array, mediaType: string, needsInline = (_url: string) => true) => {
  const conversation: Conversation = {
    turns: [{ role: "user", content: [part], toolCalls: [], toolCallId: undefined }],
    tools: [],
    toolChoice: { type: "none" },
    format: { type: "text" },
    stop: [],
    maxTokens: undefined,
    choices: 1,
    seed: undefined
  }
  const guard = { fetch: () => Effect.succeed({ bytes, mediaType }) }
  return Effect.map(InlineMedia.inline(conversation, needsInline, guard), ({ turns }) => turns[0]?.content[0])
}

it.effect.each(
  [
    ["a picture whose server reports no specific type", image, png, "binary/octet-stream", "image/png"],
    ["a picture whose server reports a wrong type", image, png, "image/jpg; charset=utf-8", "image/png"],
    ["a picture of a type that only its server reports", image, Buffer.from("GIF89a"), "image/gif", "image/gif"],
    ["a file with the type that its server reports", file, pdf, "Application/PDF; x=1", "application/pdf"],
    [
      "a file with the type that the client states",
      { ...file, mediaType: "application/pdf" },
      pdf,
      "",
      "application/pdf"
    ],
    [
      "a file with the type of its URL's extension",
      { ...file, media: { type: "url", url: `${address}.PDF?v=1.2#x.png` } },
      pdf,
      "application/octet-stream",
      "application/pdf"
    ],
    [
      "a video with the type of its URL's extension",
      { ...file, mediaType: "video/*", media: { type: "url", url: `${address}.mp4` } },
      pdf,
      "",
      "video/mp4"
    ],
    ["a file of unknown type", file, pdf, "application/octet-stream", "application/octet-stream"]
  ] as const
)("%s", ([, part, bytes, said, expected]) =>
  Effect.gen(function*() {
    assert.deepInclude(yield* inline(part, bytes, said), {
      mediaType: expected,
      media: { type: "base64", data: bytes.toString("base64") }
    })
  }))

it.effect.each(
  [
    ["a picture", image, png, "image/png"],
    ["a PDF", { ...file, mediaType: "application/pdf" }, pdf, "application/pdf"]
  ] as const
)(
  "%s at an insecure URL is fetched for Anthropic, which fetches only secure ones",
  ([, part, bytes, mediaType]) =>
    Effect.gen(function*() {
      const fetched = (url: string) =>
        inline(
          { ...part, media: { type: "url", url } },
          bytes,
          mediaType,
          (url) => messagesProvider.needsInline(url, part)
        )
      assert.deepInclude(yield* fetched("HTTP://files.example/a"), {
        mediaType,
        media: { type: "base64", data: bytes.toString("base64") }
      })
      assert.deepInclude(yield* fetched(address), { media: { type: "url", url: address } })
    })
)
