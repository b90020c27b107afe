package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.Exchange;
import dev.nereid.benchmarks.load.HttpResponseCheck;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Measures a large tensor in shared memory beside the same tensor over HTTP. */
final class SharedMemorySection {
    private static final long ELEMENTS = 4L << 20;
    private static final long BYTES = ELEMENTS * Float.BYTES;
    private static final String REGION = "benchmark";
    /** Where segments of POSIX shared memory are files. */
    private static final Path SEGMENTS = Path.of("/dev/shm");

    private static final String BODY = "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,%d],%s}],"
                    .formatted(ELEMENTS, region(0))
            + "\"outputs\":[{\"name\":\"OUTPUT0\",%s}]}".formatted(region(BYTES));

    private SharedMemorySection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("identity, 16 MB, both ways: shared memory beside HTTP");
        if (!Files.isWritable(SEGMENTS)) {
            table.addFootnote("left out: " + SEGMENTS + " is not there");
            return table;
        }
        Path segment =
                SEGMENTS.resolve("nereid-benchmark-" + ProcessHandle.current().pid());
        try {
            measure(bench, segment, table);
        } finally {
            Files.deleteIfExists(segment);
        }
        return table;
    }

    private static void measure(BenchmarkRun bench, Path segment, Table table)
            throws IOException, InterruptedException {
        InferBody body = InferBody.of("INPUT0", 1L, ELEMENTS);
        try (RandomAccessFile file = new RandomAccessFile(segment.toFile(), "rw");
                NereidProcess server = NereidProcess.start(
                        bench,
                        Launch.withExamples(bench, ModelRepositories.identity(bench), "--allow-client-shm=true"))) {
            file.setLength(2 * BYTES);
            ByteBuffer shared = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 2 * BYTES);
            shared.put(body.tensor());
            String url = server.inferUrl(ModelRepositories.IDENTITY);
            HttpResponseCheck.check(url, body, body.tensor());
            server.awaitOk(Exchange.post(
                    "/v2/systemsharedmemory/region/" + REGION + "/register",
                    "{\"key\":\"/%s\",\"offset\":0,\"byte_size\":%d}".formatted(segment.getFileName(), 2 * BYTES)));
            server.awaitOk(Exchange.post(NereidProcess.inferPath(ModelRepositories.IDENTITY), BODY));
            check(shared, body.tensor());
            bench.run(
                    new CeilingComparison(
                            Wrk.json("system shared memory x 1", bench, 1, BODY, url),
                            List.of(new Ceiling(Wrk.on("HTTP, binary", bench, 1, body, url), new Goal.RateAtLeast(5)))),
                    table);
        }
    }

    private static void check(ByteBuffer shared, ByteBuffer expected) throws IOException {
        ByteBuffer output = shared.slice((int) BYTES, (int) BYTES).order(ByteOrder.LITTLE_ENDIAN);
        if (!output.equals(expected)) {
            throw new IOException("shared memory: another tensor than was sent");
        }
    }

    private static String region(long offset) {
        return "\"parameters\":{\"shared_memory_region\":\"%s\",\"shared_memory_offset\":%d,\"shared_memory_byte_size\":%d}"
                .formatted(REGION, offset, BYTES);
    }
}
