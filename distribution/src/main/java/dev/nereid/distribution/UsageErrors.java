package dev.nereid.distribution;

import picocli.CommandLine;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.OverwrittenOptionException;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;
import picocli.CommandLine.UnmatchedArgumentException;

/** Says what is wrong with a command line, in one line. */
final class UsageErrors {
    private UsageErrors() {}

    /** Reports a wrong command line and returns the exit status. */
    static int report(ParameterException error, String... arguments) {
        CommandLine command = error.getCommandLine();
        String name = command.getCommandSpec().qualifiedName();
        command.getErr().println(name + ": " + text(error) + "; see " + name + " --help");
        return ExitStatus.USAGE;
    }

    private static String text(ParameterException error) {
        return switch (error) {
            case UnmatchedArgumentException unmatched ->
                unmatched(unmatched.getUnmatched().getFirst());
            case OverwrittenOptionException twice -> name(twice.getOverwritten()) + ": given twice (expected: once)";
            case MissingParameterException missing -> missing(missing);
            default ->
                error.getCause() instanceof TypeConversionException conversion && error.getArgSpec() != null
                        ? name(error.getArgSpec()) + ": '" + error.getValue() + "' (expected: "
                                + conversion.getMessage() + ")"
                        : firstLine(error);
        };
    }

    private static String unmatched(String argument) {
        return argument.startsWith("-")
                ? argument.replaceFirst("=.*", "") + ": unknown flag"
                : "'" + argument + "': unexpected (expected: flags only)";
    }

    private static String missing(MissingParameterException error) {
        ArgSpec argument = error.getMissing().isEmpty()
                ? error.getArgSpec()
                : error.getMissing().getFirst();
        if (argument == null) {
            return firstLine(error);
        }
        String label = argument.paramLabel();
        return name(argument) + ": missing (expected: " + name(argument) + "=" + label + ")";
    }

    private static String name(ArgSpec argument) {
        return argument instanceof OptionSpec option ? option.names()[0] : argument.paramLabel();
    }

    private static String firstLine(ParameterException error) {
        return String.valueOf(error.getMessage()).lines().findFirst().orElse("wrong command line");
    }
}
