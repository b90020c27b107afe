package dev.nereid.api.tls;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.ByteArrayOutputStream;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads RSA and EC private keys in PEM. Formats are PKCS #8 and the traditional forms PKCS #1 and SEC 1. Static
 * functions only.
 *
 * <p>A traditional key lacks the identifier of its algorithm. It is put into a PKCS #8 structure with the identifier:
 * that of RSA, or the one of the certificate's key, which names the curve.
 */
final class PrivateKeyPem {
    /** In the header of encrypted keys of either form. */
    private static final String ENCRYPTED = "ENCRYPTED";

    private static final Pattern KEY =
            Pattern.compile("-----BEGIN ([A-Z]+ |)PRIVATE KEY-----([^-]*)-----END \\1PRIVATE KEY-----");
    private static final String[] ALGORITHMS = {"RSA", "EC"};

    private static final byte[] PKCS8_VERSION = HexFormat.of().parseHex("020100");
    private static final byte[] RSA_IDENTIFIER = HexFormat.of().parseHex("300d06092a864886f70d0101010500");

    private static final int SEQUENCE = 0x30;
    private static final int OCTET_STRING = 0x04;

    private static final byte[] PROBE = {1, 2, 3};

    private PrivateKeyPem() {}

    /** Says whether a file holds an encrypted key. */
    static boolean isEncrypted(byte[] pem) {
        return new String(pem, US_ASCII).contains(ENCRYPTED);
    }

    /**
     * Reads the first key of a file.
     *
     * @param pem the content of the file
     * @throws GeneralSecurityException if there is no key, or if it is of an unknown kind
     */
    static PrivateKey read(byte[] pem, PublicKey certified) throws GeneralSecurityException {
        Matcher matcher = KEY.matcher(new String(pem, US_ASCII));
        if (!matcher.find()) {
            throw new InvalidKeyException("no private key in PEM");
        }
        byte[] content;
        try {
            content = Base64.getMimeDecoder().decode(matcher.group(2));
        } catch (IllegalArgumentException e) {
            throw new InvalidKeyException("the private key is not in Base64", e);
        }
        return switch (matcher.group(1)) {
            case "" -> fromPkcs8(content);
            case "RSA " -> fromPkcs8(pkcs8(RSA_IDENTIFIER, content));
            case "EC " -> fromPkcs8(pkcs8(algorithmIdentifier(certified), content));
            default -> throw new InvalidKeyException("unknown kind of private key: " + matcher.group(1));
        };
    }

    /**
     * Says whether a key belongs to a public key. Files are replaced one after the other, so that they may not match.
     */
    static boolean matches(PrivateKey key, PublicKey certified) {
        if (!key.getAlgorithm().equals(certified.getAlgorithm())) {
            return false;
        }
        try {
            Signature signature =
                    Signature.getInstance(key.getAlgorithm().equals("RSA") ? "SHA256withRSA" : "SHA256withECDSA");
            signature.initSign(key);
            signature.update(PROBE);
            byte[] signed = signature.sign();
            signature.initVerify(certified);
            signature.update(PROBE);
            return signature.verify(signed);
        } catch (GeneralSecurityException e) {
            return false;
        }
    }

    private static PrivateKey fromPkcs8(byte[] content) throws GeneralSecurityException {
        InvalidKeySpecException problem = new InvalidKeySpecException("neither RSA nor EC");
        for (String algorithm : ALGORITHMS) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(content));
            } catch (InvalidKeySpecException e) {
                problem.addSuppressed(e);
            }
        }
        throw problem;
    }

    private static byte[] pkcs8(byte[] algorithmIdentifier, byte[] key) {
        return der(SEQUENCE, PKCS8_VERSION, algorithmIdentifier, der(OCTET_STRING, key));
    }

    /**
     * Returns the identifier of algorithm and curve. It is the first element of the key's encoding, a sequence of two.
     */
    private static byte[] algorithmIdentifier(PublicKey certified) throws InvalidKeyException {
        if (!certified.getAlgorithm().equals("EC")) {
            throw new InvalidKeyException("an EC key for a certificate with a key of " + certified.getAlgorithm());
        }
        byte[] encoded = certified.getEncoded();
        int start = contentStart(encoded, 0);
        int contentStart = contentStart(encoded, start);
        int end = contentStart + length(encoded, start);
        return Arrays.copyOfRange(encoded, start, end);
    }

    private static int contentStart(byte[] der, int at) {
        int first = der[at + 1];
        return at + 2 + (first < 0 ? first & 0x7F : 0);
    }

    private static int length(byte[] der, int at) {
        int first = der[at + 1];
        if (first >= 0) {
            return first;
        }
        int length = 0;
        for (int i = 0; i < (first & 0x7F); i++) {
            length = (length << Byte.SIZE) | (der[at + 2 + i] & 0xFF);
        }
        return length;
    }

    private static byte[] der(int tag, byte[]... contents) {
        int length = 0;
        for (byte[] content : contents) {
            length += content.length;
        }
        ByteArrayOutputStream der = new ByteArrayOutputStream();
        der.write(tag);
        if (length < 0x80) {
            der.write(length);
        } else {
            int bytes = (Integer.SIZE - Integer.numberOfLeadingZeros(length) + Byte.SIZE - 1) / Byte.SIZE;
            der.write(0x80 | bytes);
            for (int i = bytes - 1; i >= 0; i--) {
                der.write(length >>> (i * Byte.SIZE));
            }
        }
        for (byte[] content : contents) {
            der.writeBytes(content);
        }
        return der.toByteArray();
    }
}
