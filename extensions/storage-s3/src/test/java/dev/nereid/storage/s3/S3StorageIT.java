package dev.nereid.storage.s3;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StorageContext;
import dev.nereid.spi.storage.StoragePage;
import dev.nereid.spi.storage.StoredObject;
import dev.nereid.storage.s3.testing.S3Server;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the storage against a server of the S3 protocol. Each test has a prefix of its own. */
@Tag("slow")
final class S3StorageIT {
    private static final Map<String, String> ENVIRONMENT = Map.of(
            "AWS_ACCESS_KEY_ID", "key",
            "AWS_SECRET_ACCESS_KEY", "secret",
            "AWS_DEFAULT_REGION", "us-east-1");

    @TempDir
    private static Path directory;

    private static S3Server server;

    private final List<ModelStorage> opened = new ArrayList<>();

    @BeforeAll
    static void start() throws IOException {
        server = S3Server.start(directory);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @AfterEach
    void close() {
        opened.forEach(ModelStorage::close);
    }

    @Test
    void listsAndReadsObjects() {
        byte[] large = new byte[5_000_000];
        new Random(1).nextBytes(large);
        server.put("listing/m/config.pbtxt", "config");
        server.put("listing/m/1/model.bin", large);
        server.put("listing/other/x", "");
        server.put("beside/m/x", "");
        ModelStorage storage = open(url("listing"));

        StoragePage all = storage.list("", "");
        assertThat(all.continuation()).isEmpty();
        assertThat(all.objects())
                .extracting(StoredObject::key)
                .containsExactlyInAnyOrder("m/1/model.bin", "m/config.pbtxt", "other/x");
        Map<String, StoredObject> model = byKey(storage.list("m/", ""));
        assertThat(model).containsOnlyKeys("m/1/model.bin", "m/config.pbtxt");
        assertThat(model.get("m/1/model.bin").size()).isEqualTo(large.length);
        assertThat(read(storage, model.get("m/1/model.bin"))).isEqualTo(large);
        assertThat(read(storage, model.get("m/config.pbtxt"))).asString(UTF_8).isEqualTo("config");
        assertThat(storage.list("missing/", "").objects()).isEmpty();
    }

    @Test
    void listsTheWholeBucketWithoutAPath() {
        server.put("bucket-root/x", "1");

        assertThat(byKey(
                        open("s3://" + server.address() + "/" + S3Server.BUCKET).list("bucket-root/", "")))
                .containsOnlyKeys("bucket-root/x");
    }

    @Test
    void continuesListingsOfManyObjects() throws Exception {
        int count = 1_005;
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<?>> puts = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                String key = "many/m/1/" + i;
                puts.add(threads.submit(() -> server.put(key, "x")));
            }
            for (Future<?> put : puts) {
                put.get();
            }
        }
        ModelStorage storage = open(url("many"));

        StoragePage first = storage.list("m/", "");
        assertThat(first.continuation()).isNotEmpty();
        StoragePage second = storage.list("m/", first.continuation());
        assertThat(second.continuation()).isEmpty();
        Map<String, StoredObject> keys = byKey(first);
        keys.putAll(byKey(second));
        assertThat(keys).hasSize(count);
    }

    @Test
    void takesKeysAsTheyAre() {
        List<String> names = List.of("m/a b", "m/a+b", "m/a%2Fb", "m/größe", "m/模型", "m/a&b=c?d#e", "m/'\"<>");
        names.forEach(name -> server.put("names/" + name, name));
        ModelStorage storage = open(url("names"));

        Map<String, StoredObject> objects = byKey(storage.list("m/", ""));

        assertThat(objects).containsOnlyKeys(names);
        for (String name : names) {
            assertThat(read(storage, objects.get(name))).asString(UTF_8).isEqualTo(name);
        }
    }

    @Test
    void readsOnlyWhatWasListed() {
        server.put("changing/m/x", "before");
        ModelStorage storage = open(url("changing"));
        StoredObject listed = storage.list("", "").objects().getFirst();

        server.put("changing/m/x", "after");
        assertFails(ErrorCode.UNAVAILABLE, () -> read(storage, listed)).hasMessageContaining("changed");
        assertThat(storage.list("", "").objects().getFirst().etag()).isNotEqualTo(listed.etag());

        server.put("changing/m/x", "before");
        assertThat(storage.list("", "").objects().getFirst().etag()).isEqualTo(listed.etag());

        server.delete("changing/m/x");
        assertFails(ErrorCode.NOT_FOUND, () -> read(storage, listed));
    }

    @Test
    void reportsABucketThatIsMissing() {
        ModelStorage storage = open("s3://" + server.address() + "/no-such-bucket/models");

        assertFails(ErrorCode.NOT_FOUND, () -> storage.list("", ""))
                .hasMessageContaining("no-such-bucket")
                .hasMessageContaining("NoSuchBucket");
    }

    @Test
    void reportsAStoreThatDoesNotListen() throws Exception {
        int port;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = socket.getLocalPort();
        }
        ModelStorage storage = open("s3://127.0.0.1:" + port + "/bucket/models");

        assertFails(ErrorCode.UNAVAILABLE, () -> storage.list("", ""))
                .hasMessageContaining("bucket 'bucket' at http://127.0.0.1:" + port)
                .hasMessageContaining("refused")
                .hasMessageNotContaining("\n");
    }

    @Test
    void refusesACertificateThatIsNotTrusted() {
        ModelStorage storage = open("s3://https://" + server.tlsAddress() + "/" + S3Server.BUCKET);

        assertFails(ErrorCode.UNAVAILABLE, () -> storage.list("", "")).hasMessageContaining("PKIX");
    }

    @Test
    void endsAReadWhenItsReceiverFails() {
        server.put("broken/m/x", new byte[1_000_000]);
        ModelStorage storage = open(url("broken"));
        StoredObject object = storage.list("", "").objects().getFirst();
        OutputStream full = new OutputStream() {
            @Override
            public void write(int value) throws IOException {
                throw new IOException("disk full");
            }
        };

        assertThatThrownBy(() -> storage.read(object, full)).hasMessageContaining("disk full");
        assertThat(read(storage, object)).hasSize(1_000_000);
    }

    @Test
    void readsManyObjectsAtOnce() throws Exception {
        server.put("parallel/m/x", new byte[300_000]);
        ModelStorage storage = open(url("parallel"));
        StoredObject object = storage.list("", "").objects().getFirst();

        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            var reads = new ArrayList<Future<byte[]>>();
            for (int i = 0; i < 16; i++) {
                reads.add(threads.submit(() -> read(storage, object)));
            }
            for (var read : reads) {
                assertThat(read.get()).hasSize(300_000);
            }
        }
    }

    @Test
    void checksTheDirectoryOfLocalCopies() {
        Map<String, String> environment = new HashMap<>(ENVIRONMENT);
        environment.put("TRITON_AWS_MOUNT_DIRECTORY", directory.toString());
        assertThat(open(url("x"), environment).localDirectory()).contains(directory);
        assertThat(open(url("x")).localDirectory()).isEmpty();

        environment.put("TRITON_AWS_MOUNT_DIRECTORY", directory + "/missing");
        assertFails(ErrorCode.INVALID_ARGUMENT, () -> open(url("x"), environment))
                .hasMessageContaining("TRITON_AWS_MOUNT_DIRECTORY")
                .hasMessageContaining("an existing directory");
    }

    private interface Action {
        void run();
    }

    private static AbstractThrowableAssert<?, ?> assertFails(ErrorCode code, Action action) {
        return assertThatThrownBy(action::run)
                .isInstanceOfSatisfying(
                        BackendException.class,
                        e -> assertThat(e.code()).as("%s", e).isEqualTo(code));
    }

    private static String url(String prefix) {
        return "s3://" + server.address() + "/" + S3Server.BUCKET + "/" + prefix;
    }

    private ModelStorage open(String url) {
        return open(url, ENVIRONMENT);
    }

    private ModelStorage open(String url, Map<String, String> environment) {
        ModelStorage storage = new S3StorageProvider().open(new Context(url, environment));
        opened.add(storage);
        return storage;
    }

    private static byte[] read(ModelStorage storage, StoredObject object) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        storage.read(object, content);
        return content.toByteArray();
    }

    private static Map<String, StoredObject> byKey(StoragePage page) {
        Map<String, StoredObject> objects = new TreeMap<>();
        page.objects().forEach(object -> objects.put(object.key(), object));
        return objects;
    }

    /** A repository of a test. Immutable. */
    private record Context(String url, Map<String, String> environment) implements StorageContext {
        @Override
        public System.Logger logger() {
            return System.getLogger("nereid.storage.s3");
        }
    }
}
