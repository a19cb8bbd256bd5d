/** Layout of a page: title, description, actions, cards and facts. */
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
        {actions !== undefined && <Group gap="sm">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  )
}

/** A labelled value. */
export const Fact = ({ children, label }: { readonly label: string; readonly children: ReactNode }) => (
  <Box miw={0}>
    <Text size="xs" c="dimmed">{label}</Text>
    <Box fw={600} className="numeric" style={{ overflowWrap: "anywhere" }}>{children}</Box>
  </Box>
)

export const Card = ({ aside, children, isFlush = false, title }: {
  readonly title: string
  readonly aside?: ReactNode
  /** Whether the content has no padding. */
  readonly isFlush?: boolean
  readonly children: ReactNode
}) => (
  <Box component="section" className="card" p={isFlush ? 0 : "md"} aria-label={title}>
    <Group justify="space-between" gap="sm" {...(isFlush ? { p: "md", pb: "xs" } : { mb: "sm" })}>
      <Title order={2} size="h5">{title}</Title>
      {aside}
    </Group>
    {children}
  </Box>
)
