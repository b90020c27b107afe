package dev.nereid.distribution;

import dev.nereid.api.BestEffort;
import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.LogFlags;
import dev.nereid.distribution.flags.UsageException;
import dev.nereid.distribution.log.LogFormat;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ConsoleStreams;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.process.ProcessShutdown;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.report.VersionText;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Parses a command line and runs its command. Confined to the thread that runs it. */
final class CommandRunner {
    private static final String HELP = "--help";

    private final CommandContext context;
    private final List<Command> commands;

    CommandRunner(CommandContext context) {
        this.context = context;
        commands = new ArrayList<>(
                List.of(new ServeCommand(context), new DemoCommand(context), new CheckCommand(context)));
        commands.addAll(ClientCommand.all(context));
    }

    /** Runs a command, and returns the exit status; an error has been reported in one line. */
    int run(String... arguments) {
        List<String> line = Arrays.asList(arguments);
        String first = line.isEmpty() ? "" : line.getFirst();
        switch (first) {
            case "--version" ->
                context.console()
                        .out()
                        .print(VersionText.of(
                                context.host(), context.paths().home().resolve("plugins")));
            case HELP -> context.console().out().print(help());
            default -> {
                for (Command command : commands) {
                    if (command.form().name().equals(first)) {
                        return run(command, line.subList(1, line.size()));
                    }
                }
                String problem = first.isEmpty() ? "no command" : "'" + first + "': unknown command";
                return fail(
                        context.console(),
                        "nereid",
                        problem + " (expected: " + names() + "); see nereid --help",
                        ExitStatus.USAGE);
            }
        }
        return ExitStatus.SUCCESS;
    }

    private int run(Command command, List<String> arguments) {
        String name = "nereid " + command.form().name();
        Flags flags = new Flags();
        command.declare(flags);
        ConsoleStreams console = context.console()
                .withFormat(flags.hasLog() ? LogFlags.formatOf(arguments, context.environment()) : LogFormat.DEFAULT);
        if (arguments.contains(HELP)) {
            context.console().out().print(help(command, flags));
            return ExitStatus.SUCCESS;
        }
        try {
            flags.read(arguments, context.environment());
            flags.checkVariables(context.environment(), variables());
            if (!flags.hasLog() && context.processes().parent().isEmpty()) { // a parent has printed them
                BestEffort.run(
                        "notices",
                        () -> flags.notices()
                                .forEach(notice -> context.console().err().println(name + ": " + notice)));
            }
            return run(command);
        } catch (UsageException e) {
            return fail(console, name, e.getMessage() + "; see " + name + " " + HELP, ExitStatus.USAGE);
        } catch (StartException | RequestException e) {
            return fail(console, name, String.valueOf(e.getMessage()), ExitStatus.FAILURE);
        } catch (IOException e) {
            return fail(console, name, e.toString(), ExitStatus.FAILURE);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return fail(console, name, "interrupted", ExitStatus.FAILURE);
        }
    }

    private int run(Command command)
            throws UsageException, StartException, RequestException, InterruptedException, IOException {
        if (!command.isInterruptible()) {
            return command.run();
        }
        try (ProcessShutdown.Interruption _ = context.shutdown().interruptCaller()) {
            return command.run();
        }
    }

    /** Returns the environment variables that set flags of any command. */
    private List<String> variables() {
        Flags flags = new Flags();
        new CommandRunner(context).commands.forEach(command -> command.declare(flags));
        return flags.variables().toList();
    }

    private String names() {
        List<String> names =
                commands.stream().map(command -> command.form().name()).toList();
        return String.join(", ", names.subList(0, names.size() - 1)) + " or " + names.getLast();
    }

    private static int fail(ConsoleStreams console, String name, String problem, int status) {
        console.error(name, problem);
        return status;
    }

    private String help() {
        StringBuilder text = new StringBuilder("Serves machine-learning models over HTTP and gRPC.\n\n");
        for (Command command : commands) {
            text.append("  ").append(command.form().synopsis()).append('\n');
            text.append("      ").append(command.form().description()).append('\n');
        }
        return text
                + "  nereid --version\n      Prints the versions of the server, the JVM and the frameworks of backends.\n\n"
                + "nereid COMMAND --help lists the flags of a command.\n";
    }

    private static String help(Command command, Flags flags) {
        CommandForm form = command.form();
        return form.synopsis() + "\n" + form.description() + "\n\n" + flags.help()
                + """

                BOOL is true, on, 1, false, off or 0. A flag that is not given is taken from the environment:
                %s.

                Exit codes: %s.
                """.formatted(flags.variableExample(), form.exitCodes());
    }
}
