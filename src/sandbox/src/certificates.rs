//! A certificate authority for one control plane, and what it signs.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// All in PEM.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    /// For servers at 127.0.0.1 and localhost.
    pub(crate) server: String,
    pub(crate) server_key: String,
    /// Signs the tokens of service accounts.
    pub(crate) service_account_key: String,
    /// Checks them.
    pub(crate) service_account_public_key: String,
}

impl Certificates {
    pub(crate) fn make() -> Result<Self, rcgen::Error> {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "krafla sandbox");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let mut server = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "krafla sandbox server");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let server_key = KeyPair::generate()?;
        let server_certificate = server.signed_by(&server_key, &issuer)?;

        let service_account = KeyPair::generate()?;
        Ok(Self {
            authority: authority_certificate.pem(),
            server: server_certificate.pem(),
            server_key: server_key.serialize_pem(),
            service_account_key: service_account.serialize_pem(),
            service_account_public_key: service_account.public_key_pem(),
        })
    }
}
