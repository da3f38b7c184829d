import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
import re
d='/tmp/attackq/auth'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb',auth='self-contained')
os.set_blocking(s.p.stdout.fileno(),False)
time.sleep(1)
out=(s.p.stdout.read() or b'').decode(); log=open(d+'/x.svcdb.log').read()
m=re.search(r'svc_k_[0-9a-f]{32}_[0-9a-f]{64}',out+log); key=m.group(0)
def tok(k): 
    r=s.q('POST','/auth/token',{'api_key':k}); return r[1]['token']
R=tok(key); s.token=R
def user(n,grants):
    u=s.q('POST','/system/users',{'username':n})[1]['user_id']
    for p,a,pat,*deny in grants:
        b={'path':p,'group':'user:'+u,'allow':a}
        if deny: b['deny']=deny[0]
        if pat: b['path_pattern']=pat
        r=s.q('POST','/system/grants',b); assert r[0]<300,r
    return u
def key_of(u,rules=None):
    b={'user_id':u,'label':'x'}
    if rules: b['rules']=rules
    r=s.q('POST','/auth/keys',b); assert r[0]==201,r
    return tok(r[1]['key'])
