package dev.nereid.benchmarks;

import io.grpc.Server;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The command lines: of a run, and of each ceiling that a run starts as a process. The only place that touches standard
 * streams, system properties and the exit status.
 */
public final class Main {
    /** Starts {@link HttpEcho}. */
    static final String HTTP_ECHO = "http-echo";

    /** Starts {@link GrpcEcho}. */
    static final String GRPC_ECHO = "grpc-echo";

    private static final int FAILURE = 1;
    private static final int USAGE = 2;

    private Main() {}

    /**
     * Runs benchmarks, or a ceiling.
     *
     * @param args the name of a ceiling and the number of its event loops; otherwise the folder of the checkout and the
     *     flags of {@code benchmarks/run}
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        switch (args[0]) {
            case HTTP_ECHO -> httpEcho(Integer.parseInt(args[1]));
            case GRPC_ECHO -> grpcEcho(Integer.parseInt(args[1]));
            default -> System.exit(run(Path.of(args[0]), Arrays.asList(args).subList(1, args.length)));
        }
    }

    private static void httpEcho(int count) throws IOException {
        try (EventLoops loops = EventLoops.start(count)) {
            serve(HttpEcho.start(loops.vertx(), count));
        }
    }

    private static void grpcEcho(int count) throws IOException {
        try (EventLoops loops = EventLoops.start(count)) {
            Server server = GrpcEcho.start(loops);
            serve(server.getPort());
            server.shutdownNow();
        }
    }

    /** Tells the port, then waits for the end of the input: a ceiling does not outlive the run that started it. */
    private static void serve(int port) throws IOException {
        System.out.println(port);
        while (System.in.read() >= 0) {
            // Nothing is said to a ceiling.
        }
    }

    private static int run(Path checkout, List<String> arguments) throws IOException, InterruptedException {
        Options options;
        try {
            options = Options.parse(arguments, Runtime.getRuntime().availableProcessors());
        } catch (IllegalArgumentException e) {
            System.err.println("benchmarks/run: " + e.getMessage());
            return USAGE;
        }
        if (options.help()) {
            System.out.print(Options.USAGE);
            return 0;
        }
        try (Workspace workspace = Workspace.create();
                Children children = new Children()) {
            atInterrupt(children, workspace);
            return run(new Bench(
                    options,
                    checkout,
                    System.getProperty("java.class.path"),
                    workspace,
                    children,
                    what -> System.err.println("  measuring " + what + " ...")));
        }
    }

    /** Leaves nothing behind when the run is interrupted; at its normal end there is nothing left to do. */
    private static void atInterrupt(Children children, Workspace workspace) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            children.close();
            workspace.close();
        }));
    }

    private static int run(Bench bench) throws IOException, InterruptedException {
        Options options = bench.options();
        try {
            if (options.sections().stream().anyMatch(Section::needsWrk)) {
                Wrk.require(bench.children());
            }
        } catch (IOException e) {
            System.err.println("benchmarks/run: " + e.getMessage());
            return FAILURE;
        }
        Machine machine = Machine.here();
        Report.circumstances(machine, options).forEach(System.out::println);
        List<Table> tables = new ArrayList<>();
        int status = 0;
        if (options.compared().isPresent()) {
            return compare(bench, options.compared().get());
        }
        for (Section section : Section.values()) {
            if (!options.sections().contains(section) || bench.children().isClosed()) {
                continue;
            }
            try {
                Table table = section.measure(bench);
                tables.add(table);
                System.out.println("\n" + table.text().stripTrailing());
            } catch (IOException e) {
                System.err.println("benchmarks/run: " + section.flag() + ": " + e.getMessage());
                status = FAILURE;
            }
        }
        if (options.save()) {
            save(bench, new Report(LocalDate.now(ZoneOffset.UTC), machine, options, tables));
        }
        return status;
    }

    private static int compare(Bench bench, Path old) throws InterruptedException {
        try {
            System.out.println("\n" + CompareSection.measure(bench, old).text().stripTrailing());
            return 0;
        } catch (IOException e) {
            System.err.println("benchmarks/run: --compare: " + e.getMessage());
            return FAILURE;
        }
    }

    private static void save(Bench bench, Report report) throws IOException {
        Path folder = Files.createDirectories(bench.checkout().resolve("benchmarks/results"));
        Files.writeString(folder.resolve(report.fileName()), report.markdown());
        System.out.println("\nsaved: benchmarks/results/" + report.fileName());
    }
}
