package dev.nereid.distribution;

import dev.nereid.api.BestEffort;
import dev.nereid.distribution.flags.EndpointFlags;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.LogFlags;
import dev.nereid.distribution.flags.ServerFlags;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.report.CurlExample;

/** Command {@code nereid serve}: serves model repositories until the process is signaled. Confined to its thread. */
final class ServeCommand implements Command {
    /** The last line of a start: from here on the server responds to requests. */
    static final String SERVING = "Serving until Ctrl-C.";

    private final CommandContext context;
    private final ServerFlags server = new ServerFlags();
    private final EndpointFlags endpoints = new EndpointFlags();
    private final LogFlags log = new LogFlags();

    ServeCommand(CommandContext context) {
        this.context = context;
    }

    @Override
    public CommandForm form() {
        return new CommandForm(
                "serve",
                "--model-repository=DIR [FLAG]...",
                "Serves the models of a repository until SIGINT or SIGTERM.",
                CommandForm.SERVER_EXIT_CODES);
    }

    @Override
    public boolean isInterruptible() {
        return false;
    }

    @Override
    public void declare(Flags flags) {
        server.declare(flags);
        endpoints.declare(flags);
        log.declare(flags);
    }

    @Override
    public int run() throws StartException, InterruptedException {
        log.apply(context.log());
        RunningServer running = RunningServer.start(server, endpoints, context.withFormat(log.format()));
        if (context.console().withFormat(log.format()).hasReport()) {
            BestEffort.run(
                    "start-up report",
                    () -> context.console().out().println(running.report().text(CurlExample.Values.ZEROS)));
            context.console().out().println(SERVING);
        } else {
            BestEffort.run("start-up report", () -> running.report().log());
        }
        context.shutdown().await();
        return running.stop();
    }
}
