/** The frame of a page: its title, what it is for, and what can be done on it. */
import { Box, Group, Stack, Text, Title } from "@mantine/core"
import { type ReactNode, useEffect } from "react"

export const Page = ({ actions, children, description, title }: {
  readonly title: string
  readonly description: string
  readonly actions?: ReactNode
  readonly children: ReactNode
}) => {
  useEffect(() => {
    document.title = `${title} · Model Gateway`
  }, [title])
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-end" gap="md">
        <Box flex="1 1 260px">
          <Title order={1}>{title}</Title>
          <Text c="dimmed" mt={4} maw={640}>{description}</Text>
        </Box>
        {actions === undefined ? null : <Group gap="sm">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  )
}

export const Card = ({ aside, children, isFlush = false, title }: {
  readonly title?: string
  readonly aside?: ReactNode
  /** Whether what is in it goes from edge to edge. */
  readonly isFlush?: boolean
  readonly children: ReactNode
}) => (
  <Box component="section" className="card" p={isFlush ? 0 : "md"} aria-label={title}>
    {title === undefined ?
      null :
      (
        <Group justify="space-between" gap="sm" {...(isFlush ? { p: "md", pb: "xs" } : { mb: "sm" })}>
          <Title order={2} size="h5">{title}</Title>
          {aside}
        </Group>
      )}
    {children}
  </Box>
)
