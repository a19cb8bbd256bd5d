/** Renders an answer as text, images, audio, video, vectors or a ranking. */
import { Anchor, Box, Group, Progress, SimpleGrid, Stack, Text } from "@mantine/core"
import type { Answer } from "./Answer.ts"

/** Only this many components of a vector are drawn. */
const drawn = 96

const Vector = ({ of }: { readonly of: ReadonlyArray<number> }) => {
  const shown = of.slice(0, drawn)
  const largest = Math.max(...shown.map(Math.abs), Number.MIN_VALUE)
  return (
    <div>
      <div className="vector" role="img" aria-label={`A vector of ${of.length} numbers`}>
        {shown.map((value, index) => (
          <i
            key={index}
            style={{
              background: value < 0 ? "var(--mantine-color-orange-5)" : "var(--mantine-color-iris-5)",
              opacity: 0.08 + 0.92 * Math.abs(value) / largest
            }}
          />
        ))}
      </div>
      <Text size="xs" c="dimmed" className="mono" mt={4}>
        {`${of.length} numbers: ${of.slice(0, 4).map((value) => value.toFixed(4)).join(", ")}, …`}
      </Text>
    </div>
  )
}

const Ranking = ({ of }: { readonly of: Answer["ranking"] }) => (
  <Stack component="ol" gap="sm" p={0} m={0} aria-label="Ranking">
    {of.map(({ score, text }, index) => (
      <Box component="li" key={index} style={{ listStyle: "none" }}>
        <Group justify="space-between" wrap="nowrap" align="baseline" gap="md">
          <Text style={{ overflowWrap: "anywhere" }}>{text}</Text>
          <Text className="numeric" fw={600}>{score.toFixed(3)}</Text>
        </Group>
        <Progress value={score * 100} mt={4} size="sm" aria-label={`Relevance of result ${index + 1}`} />
      </Box>
    ))}
  </Stack>
)

const playable = /^audio\/(?:mpeg|ogg|aac|flac|wav|x-wav|mp4)/

export const Result = ({ of }: { readonly of: Answer }) => {
  const { pictures, progress, ranking, sound, text, vectors, video } = of
  return (
    <Stack gap="md">
      {text === "" ? null : <Text component="div" className="prose" data-testid="text">{text}</Text>}
      {pictures.length === 0 ? null : (
        <SimpleGrid cols={{ base: 1, sm: pictures.length > 1 ? 2 : 1 }}>
          {pictures.map((url, index) => <img key={index} className="media" src={url} alt={`Result ${index + 1}`} />)}
        </SimpleGrid>
      )}
      {sound === undefined ? null : (
        <Group>
          {playable.test(sound.type) ? <audio controls src={sound.url} aria-label="Speech" /> : null}
          <Anchor href={sound.url} download="speech">{`Download ${sound.type}`}</Anchor>
        </Group>
      )}
      {video === undefined ? null : (
        <Stack gap="xs">
          <video className="media" controls loop autoPlay muted playsInline src={video} aria-label="Video" />
          <Anchor href={video} download="video.mp4">Download video.mp4</Anchor>
        </Stack>
      )}
      {progress === undefined || video !== undefined ? null : (
        <Stack gap={6} py="lg">
          <Progress value={Math.max(4, progress)} animated aria-label="Progress" />
          <Text size="sm" c="dimmed" ta="center" role="status">{`Generating: ${progress}%`}</Text>
        </Stack>
      )}
      {vectors.map((vector, index) => <Vector key={index} of={vector} />)}
      {ranking.length === 0 ? null : <Ranking of={ranking} />}
    </Stack>
  )
}
