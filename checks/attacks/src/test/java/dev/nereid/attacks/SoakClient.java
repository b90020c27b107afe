package dev.nereid.attacks;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** One client of the soak. It repeats its traffic on connections of its own. Confined to its thread. */
abstract class SoakClient {
    private static final int SMALL = 16;
    private static final int LARGE = 100_000;
    private static final int REQUESTS_AT_ONCE = 4;

    /** Rounds before a client reconnects, so that connections are opened and closed too. */
    private static final int ROUNDS_OF_A_CONNECTION = 200;

    final VictimServer server;
    final Outcomes outcomes;
    final Random random = new Random(4_711);
    private final String kind;
    private final Duration pace;

    private SoakClient(String kind, VictimServer server, Outcomes outcomes, int paceMillis) {
        this.kind = kind;
        this.server = server;
        this.outcomes = outcomes;
        this.pace = Duration.ofMillis(paceMillis);
    }

    /** Returns one of each kind. */
    static List<SoakClient> all(VictimServer server, Outcomes outcomes) {
        return List.of(
                new HttpValid("HTTP, small", server, outcomes, 1, SMALL),
                new HttpValid("HTTP, large", server, outcomes, 20, LARGE),
                new HttpJson(server, outcomes),
                new HttpBroken(server, outcomes),
                new HttpLeaving(server, outcomes),
                new HttpUnread(server, outcomes),
                new GrpcValid("gRPC, small", server, outcomes, 1, SMALL),
                new GrpcValid("gRPC, large", server, outcomes, 20, LARGE),
                new GrpcBroken(server, outcomes),
                new GrpcCancelled(server, outcomes),
                new GrpcUnread(server, outcomes),
                new GrpcStream(server, outcomes),
                new GrpcUnreadStream(server, outcomes));
    }

    /** Sends requests until a time. */
    final void runUntil(long end) {
        while (System.nanoTime() < end) {
            try {
                connect();
                for (int round = 0; round < ROUNDS_OF_A_CONNECTION && System.nanoTime() < end; round++) {
                    round(round);
                    Await.pause(pace);
                }
            } catch (IOException | RuntimeException e) {
                outcomes.wrong(kind, e.toString());
                Await.pause(Duration.ofMillis(100));
            } finally {
                leave();
            }
        }
    }

    abstract void connect() throws IOException;

    abstract void round(int number) throws IOException;

    abstract void leave();

    final void succeeded() {
        outcomes.count(kind, "ok");
    }

    final void ended(String how) {
        outcomes.count(kind, how);
    }

    final void check(boolean isResponse, boolean isRefusal, String text, byte[] output, byte[] expected) {
        if (isRefusal) {
            outcomes.refused(kind, text);
        } else if (!isResponse) {
            outcomes.wrong(kind, text);
        } else if (!Arrays.equals(output, expected)) {
            outcomes.wrong(kind, "response with other numbers");
        } else {
            succeeded();
        }
    }

    final void checkRefusal(boolean isExpected, String text) {
        if (isExpected) {
            outcomes.count(kind, text);
        } else {
            outcomes.wrong(kind, text);
        }
    }

    final Tensor floats(int count) {
        byte[] data = new byte[count * Float.BYTES];
        random.nextBytes(data);
        return new Tensor("s" + random.nextInt(1_000), "FP32", new long[] {count}, data);
    }

    private abstract static class OverHttp extends SoakClient {
        RawHttp connection;

        OverHttp(String kind, VictimServer server, Outcomes outcomes, int paceMillis) {
            super(kind, server, outcomes, paceMillis);
        }

        @Override
        void connect() throws IOException {
            connection = RawHttp.connect(server.http());
        }

        @Override
        void leave() {
            if (connection != null) {
                connection.reset();
            }
        }
    }

    private static final class HttpValid extends OverHttp {
        private final int size;

        HttpValid(String kind, VictimServer server, Outcomes outcomes, int paceMillis, int size) {
            super(kind, server, outcomes, paceMillis);
            this.size = size;
        }

        @Override
        void round(int number) throws IOException {
            Tensor input = floats(1 + random.nextInt(size));
            RawHttp.Response response = connection.exchange(RawHttp.infer(Models.ECHO, input));
            boolean isResponse = response.status() == 200;
            check(
                    isResponse,
                    response.status() == 503,
                    isResponse ? "" : response.text(),
                    response.tensors(),
                    input.data());
        }
    }

    private static final class HttpJson extends OverHttp {
        HttpJson(VictimServer server, Outcomes outcomes) {
            super("HTTP, JSON", server, outcomes, 2);
        }

        @Override
        void round(int number) throws IOException {
            String data = "[" + random.nextInt(1_000) + ".5," + random.nextInt(1_000) + ".25]";
            byte[] body = RawHttp.ascii(
                    "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":" + data + "}]}");
            RawHttp.Response response = connection.exchange(RawHttp.post(RawHttp.path(Models.ECHO), body));
            boolean isRight = response.text().replace(" ", "").contains(data);
            check(response.status() == 200 && isRight, response.status() == 503, response.text(), body, body);
        }
    }

    private static final class HttpBroken extends OverHttp {
        HttpBroken(VictimServer server, Outcomes outcomes) {
            super("HTTP, broken", server, outcomes, 2);
        }

        @Override
        void round(int number) throws IOException {
            byte[] request = switch (number % 5) {
                case 0 -> RawHttp.infer("nobody", floats(4));
                case 1 -> RawHttp.infer(Models.ECHO, floats(4).shaped(5));
                case 2 -> RawHttp.infer(Models.ECHO, floats(4).shaped(-4));
                case 3 -> RawHttp.post(RawHttp.path(Models.ECHO), RawHttp.ascii("{\"inputs\":[{]}"));
                default -> RawHttp.post(RawHttp.path(Models.ECHO), new byte[64], "Content-Encoding: gzip");
            };
            RawHttp.Response response = connection.exchange(request);
            checkRefusal(
                    response.status() >= 400 && response.status() != 503, response.status() + " " + response.text());
            if (response.announcesClose()) {
                leave();
                connect();
            }
        }
    }

    private static final class HttpLeaving extends OverHttp {
        HttpLeaving(VictimServer server, Outcomes outcomes) {
            super("HTTP, leaving", server, outcomes, 5);
        }

        @Override
        void round(int number) throws IOException {
            byte[] request = number % 3 == 0
                    ? RawHttp.infer(Models.PAUSING, floats(4).shaped(1, 4))
                    : RawHttp.infer(Models.ECHO, floats(LARGE / 2));
            connection.send(request, 0, number % 2 == 0 ? request.length : request.length / 2);
            leave();
            ended("left");
            connect();
        }
    }

    private static final class HttpUnread extends OverHttp {
        HttpUnread(VictimServer server, Outcomes outcomes) {
            super("HTTP, unread", server, outcomes, 5);
        }

        @Override
        void round(int number) throws IOException {
            ByteArrayOutputStream requests = new ByteArrayOutputStream();
            byte[] request = RawHttp.infer(Models.ECHO, floats(number % 4 == 0 ? LARGE : SMALL));
            for (int i = 0; i < 20; i++) {
                requests.writeBytes(request);
            }
            try (HostileConnections connections = HostileConnections.connect(server.http(), 1)) {
                connections.sendAll(requests.toByteArray(), Duration.ofMillis(200));
                ended("left");
            }
        }
    }

    private abstract static class OverGrpc extends SoakClient {
        RawHttp2 connection;

        OverGrpc(String kind, VictimServer server, Outcomes outcomes, int paceMillis) {
            super(kind, server, outcomes, paceMillis);
        }

        @Override
        void connect() throws IOException {
            connection = RawHttp2.connect(server.grpc());
        }

        @Override
        void leave() {
            if (connection != null) {
                connection.reset();
            }
        }
    }

    private static final class GrpcValid extends OverGrpc {
        private final int size;

        GrpcValid(String kind, VictimServer server, Outcomes outcomes, int paceMillis, int size) {
            super(kind, server, outcomes, paceMillis);
            this.size = size;
        }

        @Override
        void round(int number) throws IOException {
            List<Tensor> inputs = new ArrayList<>();
            List<RawHttp2.Call> calls = new ArrayList<>();
            for (int i = 0; i < REQUESTS_AT_ONCE; i++) {
                Tensor input = floats(1 + random.nextInt(size));
                inputs.add(input);
                calls.add(
                        connection.begin(Frames.INFER, InferMessage.framed(InferMessage.request(Models.ECHO, input))));
            }
            for (int i = 0; i < REQUESTS_AT_ONCE; i++) {
                RawHttp2.Call call = connection.await(calls.get(i));
                check(
                        call.status() == RawHttp2.Call.OK,
                        call.status() == RawHttp2.Call.UNAVAILABLE,
                        call.status() + " " + call.text(),
                        InferMessage.output(call.message()),
                        inputs.get(i).data());
            }
        }
    }

    private static final class GrpcBroken extends OverGrpc {
        GrpcBroken(VictimServer server, Outcomes outcomes) {
            super("gRPC, broken", server, outcomes, 2);
        }

        @Override
        void round(int number) throws IOException {
            byte[] message = switch (number % 5) {
                case 0 -> InferMessage.framed(InferMessage.request("nobody", floats(4)));
                case 1 ->
                    InferMessage.framed(
                            InferMessage.request(Models.ECHO, floats(4).shaped(5)));
                case 2 ->
                    InferMessage.framed(
                            InferMessage.request(Models.ECHO, floats(4).shaped(-4)));
                case 3 -> InferMessage.framed(new byte[] {0x3a, 100, 1});
                default -> InferMessage.framed(0, Integer.MAX_VALUE, new byte[10]);
            };
            RawHttp2.Call call = connection.await(connection.begin(Frames.INFER, message));
            checkRefusal(
                    call.status() != RawHttp2.Call.OK && call.status() != RawHttp2.Call.UNAVAILABLE,
                    call.status() + " " + call.text());
        }
    }

    private static final class GrpcCancelled extends OverGrpc {
        GrpcCancelled(VictimServer server, Outcomes outcomes) {
            super("gRPC, cancelled", server, outcomes, 5);
        }

        @Override
        void round(int number) throws IOException {
            Tensor input = number % 3 == 0 ? floats(4).shaped(1, 4) : floats(LARGE / 8);
            String model = number % 3 == 0 ? Models.PAUSING : Models.ECHO;
            byte[] message = InferMessage.framed(InferMessage.request(model, input));
            boolean ends = number % 2 == 0;
            RawHttp2.Call cancelled =
                    connection.begin(Frames.INFER, ends ? message : Arrays.copyOf(message, message.length / 2), ends);
            RawHttp2.Call kept = connection.begin(Frames.INFER, message);
            connection.cancel(cancelled);
            connection.await(kept);
            check(
                    kept.status() == RawHttp2.Call.OK,
                    kept.status() == RawHttp2.Call.UNAVAILABLE,
                    kept.status() + " " + kept.text(),
                    InferMessage.output(kept.message()),
                    input.data());
            if (number % 50 == 49) {
                connection.begin(Frames.INFER, message);
                leave();
                connect();
            }
        }
    }

    private static final class GrpcUnread extends OverGrpc {
        GrpcUnread(VictimServer server, Outcomes outcomes) {
            super("gRPC, unread", server, outcomes, 200);
        }

        @Override
        void round(int number) throws IOException {
            ByteArrayOutputStream calls = new ByteArrayOutputStream();
            calls.writeBytes(Frames.preface(0));
            byte[] message = InferMessage.framed(InferMessage.request(Models.ECHO, floats(2_000)));
            for (int i = 0; i < 100; i++) {
                calls.writeBytes(Frames.wholeCall(2 * i + 1, Frames.INFER, message));
            }
            try (HostileConnections connections = HostileConnections.connect(server.grpc(), 1)) {
                connections.sendAll(calls.toByteArray(), Duration.ofMillis(500));
                Await.pause(Duration.ofMillis(200));
                ended("left");
            }
        }
    }

    private static final class GrpcStream extends OverGrpc {
        private static final int RESPONSES = 500;

        /** The model {@code square} returns n in n responses. */
        private static final byte[] EXPECTED = expected();

        GrpcStream(VictimServer server, Outcomes outcomes) {
            super("gRPC, stream", server, outcomes, 50);
        }

        private static byte[] expected() {
            ByteBuffer values = ByteBuffer.allocate(RESPONSES * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            while (values.hasRemaining()) {
                values.putInt(RESPONSES);
            }
            return values.array();
        }

        @Override
        void round(int number) throws IOException {
            RawHttp2.Call call = connection.begin(Frames.STREAM_INFER, squareOf(RESPONSES));
            if (number % 4 == 3) {
                connection.awaitMessage(call);
                connection.cancel(call);
                ended("cancelled");
                return;
            }
            connection.await(call);
            check(
                    call.status() == RawHttp2.Call.OK && call.messages() == RESPONSES,
                    call.status() == RawHttp2.Call.UNAVAILABLE,
                    call.status() + " " + call.text() + " after " + call.messages() + " responses",
                    outputs(call),
                    EXPECTED);
        }

        /** Returns the first output of each response, one after the other. */
        private static byte[] outputs(RawHttp2.Call call) throws IOException {
            ByteArrayOutputStream outputs = new ByteArrayOutputStream();
            ByteBuffer body = ByteBuffer.wrap(call.body());
            while (body.remaining() >= InferMessage.PREFIX) {
                body.get();
                byte[] message = new byte[body.getInt()];
                body.get(message);
                outputs.writeBytes(InferMessage.streamedOutput(message));
            }
            return outputs.toByteArray();
        }
    }

    /** Reads a window of 64 KB, and then nothing for a while. After that it checks the state of the stream. */
    private static final class GrpcUnreadStream extends OverGrpc {
        GrpcUnreadStream(VictimServer server, Outcomes outcomes) {
            super("gRPC, unread stream", server, outcomes, 3_000);
        }

        @Override
        void round(int number) throws IOException {
            try (RawHttp2 unread = RawHttp2.withWindow(RawHttp.socket(server.grpc()), 65_535)) {
                RawHttp2.Call call = unread.begin(Frames.STREAM_INFER, squareOf(100_000_000));
                Await.pause(Duration.ofMillis(number % 2 == 0 ? 300 : 3_000));
                if (number % 2 == 0) {
                    ended("left");
                    return;
                }
                unread.openWindow(call);
                unread.await(call);
                check(false, call.status() == RawHttp2.Call.UNAVAILABLE, call.text(), new byte[0], new byte[0]);
            }
        }
    }

    private static byte[] squareOf(int count) {
        ByteBuffer value = ByteBuffer.allocate(Integer.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(count);
        Tensor input = new Tensor("square", "INT32", new long[] {1}, value.array());
        return InferMessage.framed(InferMessage.request(Models.SQUARE, "IN", input));
    }
}
