package dev.nereid.distribution;

import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ConsoleStreams;
import dev.nereid.distribution.process.HostInfo;
import dev.nereid.distribution.process.InstallationPaths;
import dev.nereid.distribution.process.OutOfMemoryExit;
import dev.nereid.distribution.process.ProcessShutdown;
import dev.nereid.distribution.process.ProcessTree;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Creates the services of a process, and records their output. Confined to one test. */
final class TestCommandContext {
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    final ByteArrayOutputStream err = new ByteArrayOutputStream();
    final List<String> logLevels = new ArrayList<>();

    private final Map<String, String> environment;

    TestCommandContext(Map<String, String> environment) {
        this.environment = environment;
    }

    int run(String... arguments) {
        CommandContext surroundings = new CommandContext(
                new ConsoleStreams(
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8),
                        false),
                environment,
                new InstallationPaths(Path.of("no-such-home"), Path.of("no-such-temporary-directory")),
                new HostInfo("1.2.3", "abc1234", "25 (of tests)", 2),
                settings -> logLevels.add(settings.nereid() + " " + settings.libraries()),
                new ProcessShutdown(),
                new OutOfMemoryExit(err, status -> {}),
                ProcessTree.ALONE);
        return new CommandRunner(surroundings).run(arguments);
    }

    String out() {
        return out.toString(StandardCharsets.UTF_8);
    }

    String err() {
        return err.toString(StandardCharsets.UTF_8);
    }
}
