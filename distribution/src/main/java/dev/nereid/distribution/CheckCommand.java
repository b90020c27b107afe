package dev.nereid.distribution;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.distribution.child.ChildCheck;
import dev.nereid.distribution.child.ParentCheck;
import dev.nereid.distribution.flags.FlagValue;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.ServerFlags;
import dev.nereid.distribution.flags.UsageException;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.process.LogSettings;
import dev.nereid.distribution.process.ParentPipe;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.report.CheckJson;
import dev.nereid.distribution.report.CheckText;
import dev.nereid.server.check.CheckReport;
import dev.nereid.server.check.RepositoryCheck;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The command {@code nereid check}: checks the models of repositories without serving them. Confined to its thread. */
final class CheckCommand implements Command {
    private static final String REPOSITORY = "REPOSITORY";

    private final CommandContext context;
    private final ServerFlags server = new ServerFlags();
    private final List<String> repositories = new ArrayList<>();
    private boolean load;
    private boolean json;
    private boolean verbose;
    private boolean log;

    CheckCommand(CommandContext context) {
        this.context = context;
    }

    @Override
    public CommandForm form() {
        return new CommandForm(
                "check",
                "REPOSITORY... [FLAG]...",
                "Checks the models of repositories without serving them; native libraries run in a child process.",
                "0 every model is valid; 1 a model is not; 2 wrong command line, or no such repository");
    }

    @Override
    public void declare(Flags flags) {
        flags.operands(REPOSITORY, repositories::add);
        flags.toggle("--load", () -> load = true).help("Loads the models too, all at once, as a server does.");
        flags.toggle("--json", () -> json = true).help("Prints the report as JSON, with completed configurations.");
        flags.toggle("--verbose", () -> verbose = true).help("Prints completed configurations.");
        flags.toggle("--log", () -> log = true).help("Writes the log to standard error.");
        server.declareLoading(flags);
    }

    @Override
    public int run() throws UsageException, StartException, InterruptedException {
        context.log().apply(LogSettings.levels(log ? "info" : "off", log ? "warn" : "off"));
        for (String repository : repositories) {
            if (FlagValue.isUrl(repository)) {
                server.addRepository(repository);
            } else {
                server.options.modelRepositories.add(directory(repository));
            }
        }
        ServerOptions options = server.options(context);
        Optional<ParentPipe> parent = context.processes().parent();
        if (parent.isPresent()) {
            return runAsChild(ChildCheck.start(parent.get(), context.console().out()), options);
        }
        if (RepositoryCheck.runsLibraries(options)) {
            List<String> command = context.processes().command().get();
            if (!command.isEmpty()) {
                return new ParentCheck(command, context.console(), log).run();
            }
        }
        return print(check(options));
    }

    /** Checks for a parent process, which prints nothing but what this one prints. */
    private int runAsChild(ChildCheck child, ServerOptions options) throws StartException {
        int status = ExitStatus.FAILURE;
        try {
            CheckReport report = check(child.apply(options));
            if (!child.isReportWanted()) {
                return status;
            }
            status = print(report);
        } catch (InterruptedException e) { // the parent says so
            Thread.currentThread().interrupt();
            return status;
        } catch (StartException e) {
            child.commandEnds(status);
            throw e;
        }
        child.commandEnds(status);
        return status;
    }

    private int print(CheckReport report) {
        context.console().out().print(json ? CheckJson.of(report) + "\n" : new CheckText(report, verbose).text());
        return report.isValid() ? ExitStatus.SUCCESS : ExitStatus.FAILURE;
    }

    private CheckReport check(ServerOptions options) throws StartException, InterruptedException {
        try (GpuAccess gpus = server.openGpus()) {
            return check(ServerFlags.withGpus(options, gpus), load);
        }
    }

    private static CheckReport check(ServerOptions options, boolean load) throws StartException, InterruptedException {
        try {
            return load ? RepositoryCheck.runWithLoads(options) : RepositoryCheck.run(options);
        } catch (InferenceException e) {
            throw new StartException(e.publicMessage(), e);
        } catch (IllegalArgumentException e) { // of a storage
            throw new StartException(String.valueOf(e.getMessage()), e);
        }
    }

    private static Path directory(String text) throws UsageException {
        return FlagValue.DIRECTORY
                .reader()
                .apply(text)
                .filter(Files::isDirectory)
                .orElseThrow(() -> new UsageException(REPOSITORY + ": '" + text
                        + "' (expected: an existing directory with a directory for each model)"));
    }
}
