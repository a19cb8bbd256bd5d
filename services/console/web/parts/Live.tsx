/** Shows whether a page updates live, with a button to pause it. */
import { Button, Group, Text } from "@mantine/core"
import { PauseIcon, PlayIcon } from "@radix-ui/react-icons"

export const Live = ({ isFailing, isLive, toggle }: {
  readonly isLive: boolean
  readonly isFailing: boolean
  readonly toggle: () => void
}) => {
  const state = isFailing ? "failing" : isLive ? "live" : "paused"
  const text = { failing: "No answer", live: "Live", paused: "Paused" }[state]
  return (
    <Group gap="md">
      <Group gap={8} role="status">
        <span className="live-dot" data-state={state} />
        <Text size="sm" c="dimmed">{text}</Text>
      </Group>
      <Button size="xs" variant="default" leftSection={isLive ? <PauseIcon /> : <PlayIcon />} onClick={toggle}>
        {isLive ? "Pause" : "Resume"}
      </Button>
    </Group>
  )
}
