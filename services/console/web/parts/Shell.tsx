/** Frame of every page: navigation to what the person's role allows, colour scheme, and the person. */
import { AppShell, Box, Burger, Button, Divider, Group, NavLink, ScrollArea, Stack, Text } from "@mantine/core"
import { useDisclosure } from "@mantine/hooks"
import {
  ActivityLogIcon,
  BarChartIcon,
  CodeIcon,
  CubeIcon,
  ExitIcon,
  LayersIcon,
  LockClosedIcon,
  PersonIcon,
  RocketIcon,
  StopwatchIcon
} from "@radix-ui/react-icons"
import type { ReactNode } from "react"
import { Link, useLocation } from "wouter"
import type { SessionView } from "../../api/Session.ts"
import { useMay, useSignOut } from "../data/Queries.ts"
import { Brand } from "./Brand.tsx"
import { ColorScheme } from "./ColorScheme.tsx"

type May = ReturnType<typeof useMay>

const pages = [
  { path: "/keys", label: "API Keys", icon: <LockClosedIcon />, isAllowed: (may: May) => may("keys", "list") },
  { path: "/teams", label: "Teams", icon: <PersonIcon />, isAllowed: (may: May) => may("teams", "list") },
  { path: "/usage", label: "Usage", icon: <BarChartIcon />, isAllowed: (may: May) => may("usage", "query") },
  {
    path: "/requests",
    label: "Requests",
    icon: <ActivityLogIcon />,
    isAllowed: (may: May) => may("usage", "requests")
  },
  { path: "/tasks", label: "Tasks", icon: <StopwatchIcon />, isAllowed: (may: May) => may("tasks", "list") },
  {
    path: "/models",
    label: "Models & Providers",
    icon: <CubeIcon />,
    isAllowed: (may: May) => may("fleet", "catalogue")
  },
  { path: "/queues", label: "Queues & Workers", icon: <LayersIcon />, isAllowed: (may: May) => may("fleet", "live") },
  { path: "/playground", label: "Playground", icon: <RocketIcon />, isAllowed: () => true },
  { path: "/api-reference", label: "Admin API", icon: <CodeIcon />, isAllowed: () => true }
]

export const Shell = ({ admin, children }: { readonly admin: SessionView; readonly children: ReactNode }) => {
  const [isOpen, { close, toggle }] = useDisclosure()
  const [location] = useLocation()
  const signOut = useSignOut()
  const may = useMay()
  return (
    <AppShell
      header={{ height: { base: 56, sm: 0 } }}
      navbar={{ width: 248, breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      padding={{ base: "md", md: "xl" }}
    >
      <a className="skip" href="#content">Skip to content</a>
      <AppShell.Header hiddenFrom="sm">
        <Group h="100%" px="md" justify="space-between">
          <Brand />
          <Burger opened={isOpen} onClick={toggle} size="sm" aria-label={isOpen ? "Close menu" : "Open menu"} />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="md" aria-label="Pages">
        <Box visibleFrom="sm" px={6} pt={6} pb="lg">
          <Brand />
        </Box>
        <ScrollArea flex={1}>
          <Stack gap={2}>
            {pages.filter(({ isAllowed }) => isAllowed(may)).map(({ icon, label, path }) => (
              <NavLink
                key={path}
                component={Link}
                href={path}
                label={label}
                leftSection={icon}
                active={location === path}
                aria-current={location === path ? "page" : undefined}
                className="nav-link"
                onClick={close}
              />
            ))}
          </Stack>
        </ScrollArea>
        <Divider my="sm" />
        <Stack gap="sm">
          <ColorScheme />
          <Group justify="space-between" wrap="nowrap" gap="xs">
            <Stack gap={0} miw={0}>
              <Text size="sm" c="dimmed" truncate title={admin.name}>{admin.name}</Text>
              <Text size="xs" c="dimmed" tt="capitalize">{admin.role}</Text>
            </Stack>
            <Button
              size="compact-sm"
              variant="subtle"
              color="gray"
              leftSection={<ExitIcon />}
              loading={signOut.isPending}
              onClick={() => signOut.mutate()}
            >
              Sign out
            </Button>
          </Group>
        </Stack>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Box maw={1180} mx="auto">{children}</Box>
      </AppShell.Main>
    </AppShell>
  )
}
