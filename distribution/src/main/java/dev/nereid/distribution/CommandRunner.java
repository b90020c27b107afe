package dev.nereid.distribution;

import java.io.PrintWriter;
import java.util.Locale;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

/** Reads a command line and runs its command. Confined to the thread that runs it. */
final class CommandRunner {
    private static final String VARIABLE_PREFIX = "NEREID_";
    private static final int HELP_WIDTH = 110;
    private static final int HELP_FLAG_WIDTH = 45;

    private final Surroundings surroundings;

    CommandRunner(Surroundings surroundings) {
        this.surroundings = surroundings;
    }

    /**
     * Runs a command.
     *
     * @param arguments the command and its flags
     * @return the exit status; whatever went wrong was said in one line
     */
    int run(String... arguments) {
        return commandLine().execute(arguments);
    }

    private CommandLine commandLine() {
        CommandLine line = new CommandLine(new NereidCommand(surroundings));
        line.addSubcommand(new ServeCommand(surroundings));
        line.addSubcommand(new DemoCommand(surroundings));
        line.setOut(new PrintWriter(surroundings.out(), true));
        line.setErr(new PrintWriter(surroundings.err(), true));
        line.setParameterExceptionHandler(UsageErrors::report);
        line.setExecutionExceptionHandler((failure, command, result) -> report(failure, command));
        line.setDefaultValueProvider(argument -> argument instanceof OptionSpec option
                ? surroundings.environment().get(variable(option))
                : null);
        line.setUsageHelpWidth(HELP_WIDTH);
        line.setUsageHelpLongOptionsMaxWidth(HELP_FLAG_WIDTH);
        return line;
    }

    /** The variable of the environment that stands in for a flag which is not given: NEREID_HTTP_PORT. */
    private static String variable(OptionSpec option) {
        return VARIABLE_PREFIX
                + option.longestName().replaceFirst("^-+", "").replace('-', '_').toUpperCase(Locale.ROOT);
    }

    private static int report(Exception failure, CommandLine command) throws Exception {
        if (failure instanceof StartFailure) {
            command.getErr().println(command.getCommandSpec().qualifiedName() + ": " + failure.getMessage());
            return ExitStatus.FAILURE;
        }
        throw failure;
    }
}
