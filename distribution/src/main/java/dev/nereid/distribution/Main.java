package dev.nereid.distribution;

import dev.nereid.distribution.log.LogFactory;
import dev.nereid.distribution.log.LogProvider;
import dev.nereid.distribution.log.PluginLogBridge;
import dev.nereid.distribution.process.ChildCommand;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ConsoleStreams;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.process.HostInfo;
import dev.nereid.distribution.process.InstallationPaths;
import dev.nereid.distribution.process.LogSettings;
import dev.nereid.distribution.process.OutOfMemoryExit;
import dev.nereid.distribution.process.ParentPipe;
import dev.nereid.distribution.process.ProcessShutdown;
import dev.nereid.distribution.process.ProcessTree;
import dev.nereid.distribution.process.Signals;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.process.SystemExitLogReader;
import java.io.Console;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.ref.Reference;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.jar.JarFile;
import org.slf4j.LoggerFactory;

/**
 * Entry point of the {@code nereid} program. The only place that touches standard streams, environment, system
 * properties, signals, and the exit of the process.
 */
public final class Main {
    private static final String HOME = "nereid.home";
    private static final String UNVERSIONED = "development";
    private static final String UNKNOWN = "unknown";
    private static final String LOG_PROVIDER = "slf4j.provider";
    private static final String LOG_SETUP_LEVEL = "slf4j.internal.verbosity";

    /** How long a child process may take to end after its parent. */
    private static final Duration CHILD_LIMIT = Duration.ofSeconds(5);

    private Main() {}

    /** Runs a command with its flags, and exits with its status. */
    public static void main(String[] arguments) {
        ProcessShutdown shutdown = new ProcessShutdown();
        OutOfMemoryExit outOfMemoryExit =
                new OutOfMemoryExit(new FileOutputStream(FileDescriptor.err), Runtime.getRuntime()::halt);
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> onUncaught(thread, error, outOfMemoryExit));
        SystemExitLogReader exitReader =
                new SystemExitLogReader((stack, status) -> onSystemExit(shutdown, stack, status));
        List.of("INT", "TERM").forEach(signal -> Signals.handle(signal, number -> onSignal(shutdown, number)));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(shutdown), "shutdown"));
        int status = ExitStatus.FAILURE;
        try {
            status = new CommandRunner(commandContext(shutdown, outOfMemoryExit, processes(shutdown, arguments)))
                    .run(arguments);
        } catch (RuntimeException | Error e) { // else other threads would keep the process alive
            onUncaught(Thread.currentThread(), e, outOfMemoryExit);
        } finally {
            shutdown.commandEnded(status);
            Reference.reachabilityFence(exitReader);
        }
        System.exit(status);
    }

    /**
     * Waits for the command, then ends the process with the command's status. Runs when shutdown begins, by a signal or
     * at the end of the command. Without the halt, a process that was stopped by a signal would report a failure
     * although it stopped in time.
     */
    private static void end(ProcessShutdown shutdown) {
        shutdown.request();
        int status = ExitStatus.FAILURE;
        try {
            status = shutdown.awaitEnd();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        System.out.flush();
        System.err.flush();
        Runtime.getRuntime().halt(status);
    }

    /** Begins shutdown at the first signal, as the JVM does. Halts the process at the second. */
    private static void onSignal(ProcessShutdown shutdown, int number) {
        int status = ExitStatus.SIGNAL + number;
        if (shutdown.onSignal()) {
            Runtime.getRuntime().halt(status);
        }
        System.exit(status);
    }

    /** Records an invocation of {@link System#exit} by other code, on the invoking thread. */
    private static void onSystemExit(ProcessShutdown shutdown, Throwable stack, int status) {
        if (shutdown.onSystemExit(status)) {
            LoggerFactory.getLogger(Main.class)
                    .atError()
                    .addKeyValue("thread", Thread.currentThread().getName())
                    .addKeyValue("status", status)
                    .setCause(stack)
                    .log("process exits by System.exit");
        }
    }

    private static void onUncaught(Thread thread, Throwable error, OutOfMemoryExit outOfMemoryExit) {
        outOfMemoryExit.check(error);
        LoggerFactory.getLogger(Main.class)
                .atError()
                .addKeyValue("thread", thread.getName())
                .setCause(error)
                .log("thread ended with an uncaught exception");
    }

    /** Finds the command that starts children, and the parent process: its end stops this process. */
    private static ProcessTree processes(ProcessShutdown shutdown, String[] arguments) {
        if (Boolean.getBoolean(ChildCommand.PROPERTY)) {
            shutdown.limit(CHILD_LIMIT);
            return new ProcessTree(Optional.of(ParentPipe.start(System.in, () -> onParentEnd(shutdown))), List::of);
        }
        return new ProcessTree(
                Optional.empty(),
                () -> ChildCommand.of(
                        List.of(arguments),
                        System.getenv(),
                        Charset.forName(System.getProperty("sun.jnu.encoding"), StandardCharsets.UTF_8)));
    }

    private static void onParentEnd(ProcessShutdown shutdown) {
        shutdown.request();
        System.exit(ExitStatus.FAILURE);
    }

    private static CommandContext commandContext(
            ProcessShutdown shutdown, OutOfMemoryExit outOfMemoryExit, ProcessTree processes) {
        return new CommandContext(
                new ConsoleStreams(System.out, System.err, isTerminal()),
                System.getenv(),
                new InstallationPaths(
                        Path.of(System.getProperty(HOME, ".")),
                        Path.of(
                                System.getProperty("java.io.tmpdir"),
                                "nereid-" + System.getProperty("user.name", "").replaceAll("\\W", "_"))),
                host(),
                settings -> setUpLog(settings, outOfMemoryExit),
                shutdown,
                outOfMemoryExit,
                processes);
    }

    private static void setUpLog(LogSettings settings, OutOfMemoryExit outOfMemoryExit) throws StartException {
        // Named, since a search would open every jar of the class path.
        System.setProperty(LOG_PROVIDER, LogProvider.class.getName());
        System.setProperty(LOG_SETUP_LEVEL, "WARN");
        // On one thread: loggers requested while another thread sets the log up would be substitutes that replay later.
        if (LoggerFactory.getILoggerFactory() instanceof LogFactory log) {
            log.setLevels(settings.nereid(), settings.libraries());
            log.setFormat(settings.format());
            log.reportFatalErrors(outOfMemoryExit);
            if (settings.file().isPresent()) {
                log.writeTo(appendTo(settings.file().get()));
            }
        }
        // The SLF4J of a plugin reads the same property, and its class loader does not see this provider.
        System.clearProperty(LOG_PROVIDER);
        PluginLogBridge.install();
    }

    private static boolean isTerminal() {
        return Optional.ofNullable(System.console()).filter(Console::isTerminal).isPresent();
    }

    private static HostInfo host() {
        String version = Main.class.getPackage().getImplementationVersion();
        return new HostInfo(
                version == null ? UNVERSIONED : version,
                commit(),
                Runtime.version() + " (" + System.getProperty("java.vendor", "") + ")",
                Runtime.getRuntime().availableProcessors());
    }

    /** Returns the commit in the manifest of the jar that this class is from. */
    private static String commit() {
        URL location = Main.class.getProtectionDomain().getCodeSource().getLocation();
        try (JarFile jar = new JarFile(new File(location.toURI()))) {
            String commit = jar.getManifest().getMainAttributes().getValue("Implementation-Commit");
            return commit == null || commit.isBlank() || commit.startsWith("$")
                    ? UNKNOWN
                    : commit; // a property that the build did not set
        } catch (IOException | URISyntaxException e) {
            return UNKNOWN; // started from classes, as tests do
        }
    }

    /** Opens a file for the log. Bytes go to its end, also after another program truncated it. */
    private static PrintStream appendTo(Path file) throws StartException {
        try {
            return new PrintStream(new FileOutputStream(file.toFile(), true), false, StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new StartException(
                    "--log-file: " + file + " (expected: a file that can be written): " + e.getMessage(), e);
        }
    }
}
